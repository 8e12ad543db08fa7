import { expect, test } from 'vitest'
import { markup } from '../../tools/markup.ts'

test('values are text: no name becomes an element, an attribute or a control character', () => {
  const name = `<script>alert("1")</script> & 'x' \u0007\u202e`
  const expected = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39; \\u0007\\u202e'
  expect(markup`<p title="${name}">${name}</p>`.text).toBe(`<p title="${expected}">${expected}</p>`)
})

test('markup within markup stays markup, and lists are joined', () => {
  const cells = ['a', '<'].map(cell => markup`<td>${cell}</td>`)
  expect(markup`<tr>${cells}</tr>${0}`.text).toBe('<tr><td>a</td><td>&lt;</td></tr>0')
})
