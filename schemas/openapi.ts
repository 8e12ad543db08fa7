/** The OpenAPI 3.1 document. */
export const openapi = { openapi: '3.1.0', info: { title: 'API', version: '1.0.0' }, paths: {} }
