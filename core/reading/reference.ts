/**
 * The reference page: the OpenAPI document, rendered by Swagger UI from this installation. The page loads nothing from
 * other hosts. Where the API has the same origin, one can try a request with a key, which stays in memory.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { openapi } from '../../schemas/reference/openapi.ts'

export type ReferencePage = { readonly type: string; readonly body: string | Buffer }

const html = 'text/html; charset=utf-8'
const script = 'text/javascript; charset=utf-8'
const { resolve } = createRequire(import.meta.url)
const rendererFile = (name: string): Promise<Buffer> => readFile(resolve(`swagger-ui-dist/${name}`))

/** @param scripts in the order in which they are loaded */
const pageOf = (renderer: string, scripts: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${renderer}">
</head>
<body>
<noscript>This page needs JavaScript. The same is in <a href="openapi.json">openapi.json</a>.</noscript>
<div id="reference"></div>
${scripts.map(script => `<script src="${script}"></script>`).join('\n')}
</body>
</html>
`

/** A page that sends nothing needs no key. */
const SENDS_NOTHING = `supportedSubmitMethods: [],
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],`
const SENDS_REQUESTS = `supportedSubmitMethods: ['get'],
  persistAuthorization: false,`

/** @param source of the document */
const startOf = (source: string, sending: string): string => `SwaggerUIBundle({
  ${source},
  dom_id: '#reference',
  deepLinking: true,
  ${sending}
  validatorUrl: null,
})
`
const page = pageOf('reference/renderer.css', ['reference/renderer.js', 'reference/start.js'])

/** Returns the files of the same page by name, for a folder that a browser opens without a server. */
export const referenceFiles = async (): Promise<ReadonlyMap<string, string | Buffer>> =>
  new Map<string, string | Buffer>([
    ['index.html', pageOf('renderer.css', ['renderer.js', 'document.js', 'start.js'])],
    ['renderer.js', await rendererFile('swagger-ui-bundle.js')],
    ['renderer.css', await rendererFile('swagger-ui.css')],
    // A page that is a file may not request another file.
    ['document.js', `const openapi = ${JSON.stringify(openapi)}\n`],
    ['start.js', startOf('spec: openapi', SENDS_NOTHING)],
    ['openapi.json', JSON.stringify(openapi)],
  ])

/**
 * The document without examples of optional parameters. Swagger UI would send them all: the cursor of another
 * organization is refused.
 */
const toTry = JSON.stringify(openapi, (_, value) => {
  if (value === null || typeof value !== 'object' || !('in' in value) || value.in === 'path') return value
  const { example: _example, examples: _examples, ...parameter } = value
  return parameter
})

/**
 * Returns pages by path. Their links are relative, so that they work behind a proxy that adds a prefix.
 * @param hasApi whether the API has the same origin
 */
export const referencePages = (hasApi: boolean): Readonly<Record<string, () => Promise<ReferencePage>>> => ({
  '/reference': async () => ({ type: html, body: page }),
  '/reference/start.js': async () => ({
    type: script,
    body: hasApi
      ? startOf("url: 'reference/document.json'", SENDS_REQUESTS)
      : startOf("url: 'openapi.json'", SENDS_NOTHING),
  }),
  '/reference/document.json': async () => ({ type: 'application/json; charset=utf-8', body: toTry }),
  '/reference/renderer.js': async () => ({ type: script, body: await rendererFile('swagger-ui-bundle.js') }),
  '/reference/renderer.css': async () => ({
    type: 'text/css; charset=utf-8',
    body: await rendererFile('swagger-ui.css'),
  }),
  '/openapi.json': async () => ({ type: 'application/json; charset=utf-8', body: JSON.stringify(openapi) }),
})
