import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { renewCertificate } from '../../../api/http/renew-certificate.ts'
import type { Tls } from '../../../api/http/server.ts'

const pem = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', '..', 'support', 'tls', `${name}.pem`), 'utf8')
const first: Tls = { cert: pem('cert'), key: pem('key') }
const renewed: Tls = { cert: pem('renewed-cert'), key: pem('renewed-key') }

test('new connections get a new certificate once its key matches; until then they get the old one', async scope => {
  const server = createServer(first)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => void server.close())
  const { port } = server.address() as AddressInfo
  const servedTo = (ca: string): Promise<boolean> =>
    new Promise(resolve => {
      const socket = connect({ host: '127.0.0.1', port, ca }, () => {
        socket.end()
        resolve(socket.authorized)
      }).on('error', () => resolve(false))
    })
  let files: Tls | undefined = first
  const said: unknown[] = []
  const look = renewCertificate(first, {
    read: () => files,
    use: tls => server.setSecureContext(tls),
    say: (level, _, details) => said.push([level, details?.code]),
  })
  look()
  for (const unfit of [
    undefined,
    { ...first, cert: renewed.cert },
    { ...first, cert: 'no certificate' },
    { ...renewed, key: '' },
  ]) {
    files = unfit
    for (let looks = 0; looks < 3; looks++) look()
    expect([await servedTo(first.cert), await servedTo(renewed.cert)]).toEqual([true, false])
  }
  files = renewed
  for (let looks = 0; looks < 3; looks++) look()
  expect([await servedTo(first.cert), await servedTo(renewed.cert)]).toEqual([false, true])
  expect(said).toEqual([
    ['warn', 'unreadable'],
    ['warn', expect.stringMatching(/^ERR_/)],
    ['warn', expect.stringMatching(/^ERR_/)],
    ['warn', 'empty'],
    ['info', undefined],
  ])
})
