/**
 * The reference for people: the OpenAPI document as a page, by a renderer that is part of this installation. Nothing is
 * asked of any other address, and nothing can be sent from the page: this is the admin port, not the API.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { openapi } from '../../schemas/reference/openapi.ts'

export type Page = { readonly type: string; readonly body: string | Buffer }

const html = 'text/html; charset=utf-8'
const script = 'text/javascript; charset=utf-8'
const { resolve } = createRequire(import.meta.url)
const rendererFile = (name: string): Promise<Buffer> => readFile(resolve(`swagger-ui-dist/${name}`))

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="reference/renderer.css">
</head>
<body>
<noscript>This page needs JavaScript. The same is in <a href="openapi.json">openapi.json</a>.</noscript>
<div id="reference"></div>
<script src="reference/renderer.js"></script>
<script src="reference/start.js"></script>
</body>
</html>
`

/** Without what asks for a key: a page that sends nothing needs none. */
const start = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
})
`

/** By path. Links in them are relative: they work behind a proxy that adds a prefix. */
export const referencePages: Readonly<Record<string, () => Promise<Page>>> = {
  '/reference': async () => ({ type: html, body: page }),
  '/reference/start.js': async () => ({ type: script, body: start }),
  '/reference/renderer.js': async () => ({ type: script, body: await rendererFile('swagger-ui-bundle.js') }),
  '/reference/renderer.css': async () => ({
    type: 'text/css; charset=utf-8',
    body: await rendererFile('swagger-ui.css'),
  }),
  '/openapi.json': async () => ({ type: 'application/json; charset=utf-8', body: JSON.stringify(openapi) }),
}
