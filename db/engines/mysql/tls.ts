/** TLS to a MySQL server: what is checked, and the certificates. */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { SslOptions } from 'mysql2'
import type { SslMode, Tls } from '../../url.ts'

/**
 * mysql2's options. By default it checks the certificate against Node's authorities, to which
 * NODE_EXTRA_CA_CERTS adds others, and not the host name.
 */
const CHECKS: Record<SslMode, SslOptions> = {
  REQUIRED: { rejectUnauthorized: false },
  VERIFY_CA: {},
  VERIFY_IDENTITY: { verifyIdentity: true },
}

/**
 * Returns mysql2's options for a connection, with the certificates as they are now: they may have been renewed. Throws
 * for a file that is missing or has none, and for a key of another certificate.
 */
export function readTls({ mode, files }: Tls): SslOptions {
  const texts = Object.entries(files).map(([name, file]) => [name, readFileSync(file)])
  const certificates = Object.fromEntries(texts)
  // mysql2 would throw it where nothing catches it, which ends the process.
  createSecureContext(certificates)
  return { ...CHECKS[mode], ...certificates }
}
