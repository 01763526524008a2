/** The text that a start prints for people: URLs, the API key, a first request to paste. */
import { isIPv6 } from 'node:net'
import { describeUrl } from '../../db/url.ts'
import type { Config } from '../config/config.ts'
import { TITLE } from '../config/product.ts'

/** Returns the start-up text. `body` is that of a creation at the path of REST. */
export function startText(
  { databaseUrl, listenHost = '0.0.0.0', keysCommand }: Config,
  { port, firstKey }: { port: number; firstKey: string | undefined },
  { path, body }: { path: string; body: string },
): string {
  const isLocal = ['0.0.0.0', '::', '127.0.0.1', '::1'].includes(listenHost)
  const host = isLocal ? 'localhost' : isIPv6(listenHost) ? `[${listenHost}]` : listenHost
  const origin = `http://${host}:${port}`
  const { engine, location } = describeUrl(databaseUrl)
  const key = firstKey
    ? `${firstKey}\n            Keep it: it is not shown again.`
    : `for a new one: ${keysCommand} create NAME --expires 90d`
  return `${TITLE} is running.

  REST      ${origin}/v1${path}
  tRPC      ${origin}/trpc
  OpenAPI   ${origin}/v1/openapi.json
  Docs      ${origin}/docs/
  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${location}
  API key   ${key}

A first request:

  curl ${origin}/v1${path} -H 'Authorization: Bearer ${firstKey ?? '<API_KEY>'}' \\
    -H 'Content-Type: application/json' -d '${body}' -w '\\n'
`
}
