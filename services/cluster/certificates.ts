/** Certificates for one run: an authority, and certificates that it signs. Made with openssl in a private folder. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from '../jvm.ts'
import { runTool } from '../run-program.ts'
import type { Environment } from '../service.ts'

export type CertificateFiles = { readonly cert: string; readonly key: string }

export type Authority = {
  /** The file of its own certificate. */
  readonly ca: string
  /** Makes a certificate of `CN=name` for 127.0.0.1 and `localhost`. The key is PKCS #8 without a password. */
  readonly issue: (name: string) => Promise<CertificateFiles>
}

const days = '7'
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** @throws Error if there is no openssl on the PATH */
export const createAuthority = async (folder: string, environment: Environment): Promise<Authority> => {
  const openssl = await findOnPath('openssl', environment)
  if (openssl === undefined) throw new Error('certificates are made with openssl: there is none on the PATH')
  const run = (...args: string[]) => runTool(openssl, args, { folder, environment })
  const [ca, caKey, extensions] = ['ca.pem', 'ca.key', 'extensions'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const usages = ['subjectAltName = IP:127.0.0.1, DNS:localhost', 'extendedKeyUsage = serverAuth, clientAuth']
  await writeFile(extensions, `${usages.join('\n')}\n`)
  await run('req', '-x509', ...newKey, '-keyout', caKey, '-out', ca, '-days', days, '-subj', '/CN=commission-test-ca')
  let serial = 1
  return {
    ca,
    issue: async name => {
      const [cert, key, request] = ['pem', 'key', 'csr'].map(kind => join(folder, `${name}.${kind}`)) as [
        string,
        string,
        string,
      ]
      serial++
      const signing = ['-CA', ca, '-CAkey', caKey, '-set_serial', String(serial), '-days', days, '-extfile', extensions]
      await run('req', '-new', ...newKey, '-keyout', key, '-out', request, '-subj', `/CN=${name}`)
      await run('x509', '-req', '-in', request, '-out', cert, ...signing)
      return { cert, key }
    },
  }
}
