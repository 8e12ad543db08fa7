import { expect, test } from 'vitest'
import { url } from '../../../../core/runtime/environment/setting-values.ts'

test('an address whose name or password cannot be decoded is refused: the client would fail without a clear error', () => {
  const { read, expected } = url(['http:', 'https:'])
  for (const wrong of ['http://elastic:50%off@host:9200', 'http://100%:secret@host', 'http://a%4:1@host'])
    expect(read(wrong), wrong).toBeUndefined()
  for (const right of ['http://elastic:50%25off@host:9200', 'http://%C3%A4:secret@host', 'http://host/50%off'])
    expect(read(right), right).toBe(right)
  expect(expected).toBe('an address that begins with http:// or https://, with %25 for % in a name or password')
})
