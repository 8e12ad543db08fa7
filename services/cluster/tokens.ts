/** Signs tokens for SASL OAUTHBEARER, and has the public key as the JWKS file that brokers read. */
import { generateKeyPairSync, sign } from 'node:crypto'

export const tokenAudience = 'commission-kafka'
export const tokenIssuer = 'commission-services'

export type TokenSigner = {
  /** The content of the JWKS file. */
  readonly jwks: string
  /** Returns a token for a user, valid from now on. @param seconds how long; negative for one that has ended */
  readonly sign: (user: string, seconds: number) => string
}

export const createTokenSigner = (now: () => number): TokenSigner => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = 'commission'
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    jwks: JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }] }),
    sign: (sub, seconds) => {
      const time = Math.floor(now() / 1_000)
      const iat = Math.min(time, time + seconds - 1)
      const claims = { sub, scope: 'kafka', aud: tokenAudience, iss: tokenIssuer, iat, exp: time + seconds }
      const content = `${encoded({ alg: 'RS256', kid })}.${encoded(claims)}`
      return `${content}.${sign('sha256', Buffer.from(content), privateKey).toString('base64url')}`
    },
  }
}
