/** A server that speaks as much of the protocol of Redis as its client needs to connect. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Scope } from './scope.ts'

/** A command and its arguments. */
type Command = readonly string[]

/**
 * @param answer the answer to each command that is not about the connection. `connection` is its number, from 0
 * @returns the URL, and a function: how many connections were made
 */
export const startRespServer = async (scope: Scope, answer: (command: Command, connection: number) => string) => {
  let connections = 0
  const open = new Set<Socket>()
  const server = createServer(socket => {
    const connection = connections++
    let received = ''
    open.add(socket.setNoDelay(true))
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    socket.setEncoding('latin1').on('data', text => {
      received += text
      for (;;) {
        const { command, rest } = firstCommand(received)
        if (command === undefined) return
        received = rest
        const [name = ''] = command
        socket.write(ofConnections[name.toUpperCase()] ?? answer(command, connection))
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

const ofConnections: Readonly<Record<string, string>> = { HELLO: '%0\r\n', CLIENT: '+OK\r\n', PING: '+PONG\r\n' }

/** A command is an array of texts, each after its length. Here all texts are ASCII. */
const firstCommand = (text: string): { readonly command?: Command; readonly rest: string } => {
  let at = 0
  /** Returns a number after its mark, up to the end of its line. */
  const readNumber = (): number => {
    const end = text.indexOf('\r\n', at)
    const value = end === -1 ? Number.NaN : Number(text.slice(at + 1, end))
    at = end + 2
    return value
  }
  const count = readNumber()
  if (Number.isNaN(count)) return { rest: text }
  const command: string[] = []
  for (let part = 0; part < count; part++) {
    const length = at < text.length ? readNumber() : Number.NaN
    if (Number.isNaN(length) || at + length + 2 > text.length) return { rest: text }
    command.push(text.slice(at, at + length))
    at += length + 2
  }
  return { command, rest: text.slice(at) }
}
