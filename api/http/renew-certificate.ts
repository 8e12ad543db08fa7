/**
 * In: the certificate and key of the API, read from their files. Out: after a change, new connections get them.
 * Promises: certificate and key are used only if they fit together. Until then the previous pair stays, with one
 *   warning.
 */
import { createSecureContext } from 'node:tls'
import type { Tls } from './server.ts'

type Steps = {
  /** Undefined if a file cannot be read. */
  readonly read: () => Tls | undefined
  readonly use: (tls: Tls) => void
  readonly say: (level: 'info' | 'warn', message: string, details?: Record<string, string>) => void
}

/** Returns a function that checks the files once. */
export const renewCertificate = (current: Tls, { read, use, say }: Steps): (() => void) => {
  let seen: Tls | undefined = current
  return () => {
    const found = read()
    if (found?.cert === seen?.cert && found?.key === seen?.key) return
    seen = found
    const code = found === undefined ? 'unreadable' : whyUnfit(found)
    if (found === undefined || code !== undefined) {
      say('warn', 'the new certificate cannot be used; the previous one stays in use', { code: code ?? 'unreadable' })
      return
    }
    use(found)
    say('info', 'new connections get the new certificate')
  }
}

/** Returns why no server can use this pair. An empty text would pass: Node takes it for one that was not given. */
export const whyUnfit = (tls: Tls): string | undefined => {
  if (tls.cert === '' || tls.key === '') return 'empty'
  try {
    createSecureContext(tls)
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
}
