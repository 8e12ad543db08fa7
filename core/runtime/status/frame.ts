/** The frame of the pages of the admin ports: head, styles, policy. A page loads nothing and runs no script. */
import { createHash } from 'node:crypto'

/** A page. Both texts must be escaped. @param refreshSeconds after which it loads itself again */
export const framed = (title: string, body: string, refreshSeconds?: number): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refreshSeconds === undefined ? '' : `<meta http-equiv="refresh" content="${refreshSeconds}">`}
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`

export const asText = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** The colours and the type of the explorer. */
const STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f6f7f9, #14171b);
  --surface: light-dark(#ffffff, #1c2026);
  --ink: light-dark(#1a1f26, #e9ecef);
  --quiet: light-dark(#56606c, #a7b0bc);
  --line: light-dark(#d8dde3, #363d47);
  --accent: light-dark(#1f5fbf, #8ab4f8);
  --below: light-dark(#b3261e, #ff9d94);
  --above: light-dark(#1b7340, #7fd6a0);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 0.95rem / 1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 60rem; margin: 0 auto; padding: 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; border-left: 0.4rem solid; padding-left: 0.75rem; }
h2 { font-size: 1.1rem; margin: 0 0 0.75rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem; scroll-margin-top: 1rem; }
h3:target { border-left: 0.4rem solid var(--accent); padding-left: 0.6rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
code { font-size: 0.85em; }
.ready { border-color: var(--above); }
.not-ready, .wrong { border-color: var(--below); }
section { margin: 1rem 0; padding: 1.1rem 1.25rem; background: var(--surface); border: 1px solid var(--line); border-radius: 0.5rem; }
section.wrong { border: 1px solid var(--line); border-left: 4px solid var(--below); }
section > p:first-child { margin-top: 0; }
section > :last-child { margin-bottom: 0; }
ul { margin: 0; padding-left: 1.2rem; }
li + li { margin-top: 0.4rem; }
.quiet, figcaption { color: var(--quiet); }
figure { margin: 0; }
svg { display: block; flex: 1; min-width: 0; height: 4.5rem; }
.plot { display: flex; gap: 0.5rem; margin-top: 0.5rem; }
.plot .scale { flex-direction: column; text-align: right; }
svg .curve { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linecap: round; stroke-linejoin: round; }
svg .axis { stroke: var(--line); vector-effect: non-scaling-stroke; }
.scale { display: flex; justify-content: space-between; color: var(--quiet); font-size: 0.8rem; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; color: var(--quiet); border-bottom: 1px solid var(--line); }
th, td { padding: 0.35rem 0.75rem 0.35rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
tbody tr:last-child td { border-bottom: 0; }
th.number, td.number { text-align: right; padding-right: 1.75rem; }
.good { color: var(--above); font-weight: 600; }
.work { color: var(--accent); font-weight: 600; }
.bad { color: var(--below); font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: 0.4rem 1.5rem; }
@media (max-width: 46rem) {
  main { padding: 0.75rem; }
  section { padding: 0.8rem; }
  table, tbody, tr, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td, td.number { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding: 0.1rem 0; border: 0; text-align: right; }
  td::before { content: attr(data-head); color: var(--quiet); text-align: left; font-weight: 400; }
}
`

/** Of the pages in this frame: their own styles, no other styles, no scripts, nothing from elsewhere. */
export const STATUS_PAGE_POLICY = [
  "default-src 'none'",
  'img-src data:',
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
