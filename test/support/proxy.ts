/** A port that passes every connection on to another: what a service looks like that comes later than who needs it. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Scope } from './scope.ts'

/** Listens on a port of this machine from now until the scope ends. @param target as `host:port` */
export const passOn = async (scope: Scope, port: number, target: string): Promise<void> => {
  const [host = '', targetPort] = target.split(':')
  const open = new Set<Socket>()
  const keep = (socket: Socket): void => {
    open.add(socket)
    // Either side may end the connection in any way: the other is ended too.
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
  }
  const server = createServer(incoming => {
    const outgoing = connect(Number(targetPort), host)
    for (const socket of [incoming, outgoing]) keep(socket)
    incoming.pipe(outgoing).pipe(incoming)
    incoming.on('close', () => outgoing.destroy())
    outgoing.on('close', () => incoming.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  scope.onTestFinished(async () => {
    for (const socket of open) socket.destroy()
    server.close()
    await once(server, 'close')
  })
}
