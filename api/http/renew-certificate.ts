/**
 * In: the certificate and key of the API, as they are read now. Out: new connections get them once they have changed.
 * Promises: certificate and key are used only where they fit together; until then the pair before stays, and a warning
 * is logged once.
 */
import { createSecureContext } from 'node:tls'
import type { Tls } from './server.ts'

type Steps = {
  /** Undefined where a file cannot be read. */
  readonly read: () => Tls | undefined
  readonly use: (tls: Tls) => void
  readonly say: (level: 'info' | 'warn', message: string, details?: Record<string, string>) => void
}

/** Gives a function that looks once. */
export const renewCertificate = (current: Tls, { read, use, say }: Steps): (() => void) => {
  let seen: Tls | undefined = current
  return () => {
    const found = read()
    if (found?.cert === seen?.cert && found?.key === seen?.key) return
    seen = found
    const code = found === undefined ? 'unreadable' : whyUnfit(found)
    if (found === undefined || code !== undefined) {
      say('warn', 'the certificate changed and cannot be used; the one before stays', { code: code ?? 'unreadable' })
      return
    }
    use(found)
    say('info', 'new connections get the new certificate')
  }
}

/**
 * Why no server can use this pair. An empty text is no certificate and no key: Node would take it for one that was not
 * given.
 */
export const whyUnfit = (tls: Tls): string | undefined => {
  if (tls.cert === '' || tls.key === '') return 'empty'
  try {
    createSecureContext(tls)
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
}
