/**
 * In: connections. Out: requests for the app, including those with an `Expect` header. The server answers bytes that
 *   are not a request, incomplete requests and CONNECT with a refusal as JSON. Then it closes the connection.
 * Promises: Node itself answers nothing. Its own 400, 408, 413, 417 and 431 have no body and no request id. A client
 *   that ends its side of a connection behind a complete request gets the answer if it begins within a second. After
 *   that the client has gone: the answer is given up. If its last bytes are only a part of a request, at once.
 *   A connection holds one answer at a time, however many requests it sends ahead: each starts when the answer before
 *   it is delivered. While one waits, the socket is paused, and the end of the connection is not seen: the request
 *   under way is told (`onceFurtherBytes`). `onceDelivered` is the one moment at which permits and memory of a request
 *   end.
 * Can go wrong: more than REQUESTS_AHEAD_MAX come in bytes that were already read → the connection is closed.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Refusal, refusalAnswer, type Schedule, scheduleTimer } from '../../core/runtime/index.ts'
import type { RefusalCode } from '../../schemas/errors.ts'
import {
  CONNECTIONS_MAX,
  ENCRYPTED_CONNECTIONS_MAX,
  ENDED_SIDE_TIME,
  HEADERS_TIME_MAX,
  KEEP_ALIVE_TIME,
  PARSER_BYTES_MAX,
  REQUEST_TIME_MAX,
  REQUESTS_AHEAD_MAX,
  SOCKET_SILENCE_MAX,
  TIMEOUT_CHECK_INTERVAL,
} from '../limits.ts'

/** A certificate with its chain, and its key, as PEM. */
export type Tls = { readonly cert: string; readonly key: string }

export type RequestListener = (req: IncomingMessage, res: ServerResponse) => void

type Parts = {
  readonly listener: RequestListener
  /** Without a certificate the server is unencrypted. */
  readonly tls?: Tls | undefined
  readonly newRequestId: () => string
  /** Called for every refusal that never became a request of the app, with the address of the connection. */
  readonly onRefused: (requestId: string, code: RefusalCode, address: string | undefined) => void
  /** Maximum connections at once; by default the limit of limits.ts. */
  readonly connectionsMax?: number
  /** Called for every new connection that is closed because of the limit. */
  readonly onDrop?: () => void
  /** By default the timers of the process. */
  readonly later?: Schedule
}

const options: ServerOptions = {
  maxHeaderSize: PARSER_BYTES_MAX,
  headersTimeout: HEADERS_TIME_MAX,
  requestTimeout: REQUEST_TIME_MAX,
  connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
  keepAliveTimeout: KEEP_ALIVE_TIME,
  // The app checks Host itself and answers in its own form.
  requireHostHeader: false,
  noDelay: true,
}

/** All connections of a server: Node forgets those without a handshake, and those that sent CONNECT. */
const socketsOf = new WeakMap<Server, ReadonlySet<Socket>>()

/** @throws Error if certificate and key are not valid */
export const createApiServer = (parts: Parts): Server => {
  const { listener: answer, tls, newRequestId, onRefused, later = scheduleTimer } = parts
  const ordered = oneAtATime((req, res) => {
    // The client has ended its side during the answer before.
    if (req.socket.readableEnded) noteFurtherBytes(res)
    answer(req, res)
  })
  /** The last answer of each connection. */
  const answering = new WeakMap<Duplex, ServerResponse>()
  const listener: RequestListener = (req, res) => {
    answering.set(req.socket, res)
    requestBegins(res)
    ordered.listener(req, res)
  }
  const server: Server = tls
    ? createTlsServer({ ...options, ...tls, allowHalfOpen: true, handshakeTimeout: HEADERS_TIME_MAX }, listener)
    : createServer(options, listener)
  // HAZARD: Node has no option for this. Without it, Node ends a connection whose client has ended its side, and drops
  // the answer. With it, Node ends the connection after the last answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  const requestBegins = limitConnections(server, {
    max: parts.connectionsMax ?? (tls ? ENCRYPTED_CONNECTIONS_MAX : CONNECTIONS_MAX),
    onDrop: parts.onDrop ?? (() => undefined),
  })
  const sockets = new Set<Socket>()
  socketsOf.set(server, sockets)
  server.on('connection', (socket: Socket) => void sockets.add(socket.once('close', () => sockets.delete(socket))))
  server.setTimeout(SOCKET_SILENCE_MAX)
  // 0 means no limit: Node would silently drop headers beyond a limit, for example Authorization. The app counts.
  server.maxHeadersCount = 0

  const refuse = (socket: Duplex, code: RefusalCode) => {
    if (!socket.writable) return void socket.destroy()
    const requestId = newRequestId()
    onRefused(requestId, code, socket instanceof Socket ? socket.remoteAddress : undefined)
    closeWith(socket, code, requestId)
  }

  /** Closes the connection of a client that has gone while it waited for an answer. Returns whether it did. */
  const closeIfWaiting = (socket: Duplex): boolean => {
    const isWaiting = ordered.underWay(socket)?.headersSent === false
    if (isWaiting) socket.destroy()
    return isWaiting
  }

  /** A wait ends: nobody tells whether the client has gone. Any other answer has a moment to begin. */
  const noteEnd = (socket: Socket): void => {
    const underWay = ordered.underWay(socket)
    if (underWay === undefined) return
    noteFurtherBytes(underWay)
    socket.once(
      'close',
      later(ENDED_SIDE_TIME, () => closeIfWaiting(socket)),
    )
  }
  // After Node's own listener: the request that the last bytes complete is under way.
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => socket.once('end', () => noteEnd(socket)))

  /** Refuses bytes that are not a request. Waits for the answer before them: a client would mix up the two. */
  const refuseNext = (socket: Duplex, code: RefusalCode) => {
    const underWay = ordered.underWay(socket)
    if (underWay) noteFurtherBytes(underWay)
    const current = answering.get(socket)
    if (current && !current.writableFinished && !current.destroyed) current.once('close', () => refuse(socket, code))
    else refuse(socket, code)
  }

  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // Nothing can be written before the handshake: the refusal would wait, and hold its connection forever.
    if ('secureConnecting' in socket && socket.secureConnecting) return void socket.destroy()
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    if (error.code === ENDED_EARLY && closeIfWaiting(socket)) return
    refuseNext(socket, codeOf(error))
  })
  server.on('connect', ({ socket }) => {
    // HAZARD: Node removes its own listeners from this socket. Without one for `error`, a reset connection ends the
    // process. Without a timeout, a client that reads nothing holds the socket forever.
    socket.on('error', () => socket.destroy())
    socket.setTimeout(SOCKET_SILENCE_MAX, () => socket.destroy())
    // Nobody else reads from this socket now, and only who reads sees its end.
    socket.on('end', () => closeIfWaiting(socket)).resume()
    refuseNext(socket, 'invalid_request')
  })
  // `Expect: 100-continue` gets the final answer at once: no body is read. The app refuses any other expectation.
  server.on('checkContinue', listener)
  server.on('checkExpectation', listener)
  return server
}

/** The error of Node's parser if a connection ends within a request. */
const ENDED_EARLY = 'HPE_INVALID_EOF_STATE'

/** Maps a parser error to a refusal code. */
const codeOf = (error: NodeJS.ErrnoException & { rawPacket?: Buffer }): RefusalCode => {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'request_too_large'
  if (error.code !== 'HPE_HEADER_OVERFLOW') return 'invalid_request'
  // The parser counts the target among the headers: if the first line alone did not end, the target is too long.
  const packet = error.rawPacket?.subarray(0, PARSER_BYTES_MAX) ?? Buffer.alloc(0)
  return packet.includes('\n') ? 'headers_too_large' : 'uri_too_long'
}

/** Writes a refusal without a request to answer, and ends the connection. */
const closeWith = (socket: Duplex, code: RefusalCode, requestId: string): void => {
  const answer = refusalAnswer(new Refusal(code))
  const lines = [
    `HTTP/1.1 ${answer.status} ${code}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${answer.body.length}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    ...Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ]
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), answer.body]), () => socket.destroy())
}

/** The server cannot listen on its address. */
export class ListenError extends Error {
  override name = 'ListenError'
}

/** Starts to listen and returns the port; a free one for port 0. @throws ListenError */
export const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? 'unknown error')
      reject(new ListenError(`Cannot listen on ${host}:${port}: ${why}`))
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })

/** Stops accepting connections, lets requests finish for `time` milliseconds, then closes all connections. */
export const stop = async (server: Server, time: number): Promise<void> => {
  const closed = new Promise<void>(resolve => void server.close(() => resolve()))
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    server.closeAllConnections()
    for (const socket of socketsOf.get(server) ?? []) socket.destroy()
  }, time)
  await closed
  clearTimeout(timer)
}

/** During shutdown sets `Connection: close` on every answer: an open connection would delay the end. */
export const closingConnections = (listener: RequestListener, stopping: () => boolean): RequestListener => {
  return (req, res) => {
    if (stopping()) res.setHeader('Connection', 'close')
    listener(req, res)
  }
}

type Limit = {
  readonly max: number
  /** Called for every new connection that is closed because of the limit. */
  readonly onDrop: () => void
}

/**
 * Limits the connections at once. Near the limit, a new connection closes the one that is idle for longest, so clients
 * that keep connections block no new client. If none is idle at the limit, Node closes the new one without an answer,
 * and each one that becomes idle then makes room.
 * @returns a callback to call when a request begins
 */
const limitConnections = (server: Server, { max, onDrop }: Limit): ((res: ServerResponse) => void) => {
  const near = max - Math.ceil(max / 50)
  const inFlight = new WeakMap<Socket, number>()
  // In the order in which they became idle.
  const idle = new Set<Socket>()
  let open = 0
  /** Closed here, and still counted as open. */
  let closing = 0

  const makeRoom = (): void => {
    if (open - closing <= near) return
    const [oldest] = idle
    if (oldest === undefined) return
    idle.delete(oldest)
    closing++
    oldest.once('close', () => closing--)
    oldest.destroy()
  }
  server.maxConnections = max
  server.on('drop', () => {
    onDrop()
    // Node has closed the new connection: the next one finds room.
    makeRoom()
  })
  server.on('connection', (socket: Socket) => {
    open++
    socket.once('close', () => open--)
    makeRoom()
  })

  return res => {
    const { socket } = res.req
    if (!inFlight.has(socket)) socket.once('close', () => idle.delete(socket))
    inFlight.set(socket, (inFlight.get(socket) ?? 0) + 1)
    idle.delete(socket)
    res.once('close', () => {
      const left = (inFlight.get(socket) ?? 1) - 1
      inFlight.set(socket, left)
      if (left > 0 || socket.destroyed) return
      // One that is idle already is closed first: the client of this one may not have read its answer yet.
      if (idle.size > 0) makeRoom()
      idle.add(socket)
    })
  }
}

/** A request of a connection, with its answer. */
type Request = Parameters<RequestListener>

type Ordered = {
  /** Starts the requests of a connection one after the other. */
  readonly listener: RequestListener
  /** Returns the answer that the connection delivers now or waits for; undefined between two requests. */
  readonly underWay: (socket: object) => ServerResponse | undefined
}

export const oneAtATime = (listener: RequestListener): Ordered => {
  const connections = new WeakMap<object, { res: ServerResponse; readonly waiting: Request[] }>()

  const answer = (socket: Socket, waiting: Request[], [req, res]: Request): void => {
    connections.set(socket, { res, waiting })
    res.once('close', () => {
      const next = waiting.shift()
      if (waiting.length === 0) socket.resume()
      // A response with `Connection: close` has ended the connection: nothing more can be written.
      if (next && socket.writable) answer(socket, waiting, next)
      else connections.delete(socket)
    })
    if (waiting.length > 0) noteFurtherBytes(res)
    listener(req, res)
  }
  return {
    listener: (req, res) => {
      const { socket } = req
      const connection = connections.get(socket)
      if (connection === undefined) {
        answer(socket, [], [req, res])
      } else if (connection.waiting.push([req, res]) > REQUESTS_AHEAD_MAX) socket.destroy()
      else {
        socket.pause()
        noteFurtherBytes(connection.res)
      }
    },
    underWay: socket => connections.get(socket)?.res,
  }
}

const EVENT = 'further bytes'
const followed = new WeakSet<ServerResponse>()

/** Notes that the client of this answer has sent more: another request, or bytes that are none. */
export const noteFurtherBytes = (res: ServerResponse): void => {
  followed.add(res)
  res.emit(EVENT)
}

/**
 * Calls `run` once the client of this answer sends more; at once if it has. Nothing of it is read while the request is
 * answered. So the end of the connection may not be seen either, and the request must not wait long: see
 * wait-for-change.ts.
 */
export const onceFurtherBytes = (res: ServerResponse, run: () => void): void => {
  if (followed.has(res)) run()
  else res.once(EVENT, run)
}

/**
 * Calls `run` once the response is delivered or its connection is gone; at once if it is gone already. A response waits
 * for its turn on its connection. If its turn never comes (the connection ended earlier, or a CONNECT behind it removed
 * Node's listeners), the response gets no `close` event. So this also listens to the connection of a waiting response.
 */
export const onceDelivered = ({ socket }: IncomingMessage, res: ServerResponse, run: () => void): void => {
  const end = (): void => {
    res.removeListener('close', end)
    socket.removeListener('close', end)
    run()
  }
  if (res.closed || socket.destroyed) {
    end()
    return
  }
  res.once('close', end)
  if (res.socket === null) socket.once('close', end)
}
