/** What a start tells people, and the log: URLs, the database, the API key, a first request to paste. */
import { isIPv6 } from 'node:net'
import { describeUrl } from '../../db/url.ts'
import type { Config } from '../config/config.ts'
import { TITLE } from '../config/product.ts'

/** Returns the URLs of a service that listens on a port, as this machine reaches it, that of links, and its database. */
export function placesOf(
  { databaseUrl, baseUrl, listenHost = '0.0.0.0' }: Config,
  { port }: { port: number },
  { path }: { path: string },
) {
  const isLocal = ['0.0.0.0', '::', '127.0.0.1', '::1'].includes(listenHost)
  const host = isLocal ? 'localhost' : isIPv6(listenHost) ? `[${listenHost}]` : listenHost
  const origin = `http://${host}:${port}`
  const { engine, location } = describeUrl(databaseUrl)
  return {
    rest: `${origin}/v1${path}`,
    trpc: `${origin}/trpc`,
    openapi: `${origin}/v1/openapi.json`,
    docs: `${origin}/docs/`,
    baseUrl,
    database: `${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${location}`,
  }
}

/** Returns the start-up text. `body` is that of a creation at the path of REST. */
export function startText(
  config: Config,
  state: { port: number; firstKey: string | undefined },
  request: { path: string; body: string },
): string {
  const { rest, trpc, openapi, docs, baseUrl: links, database } = placesOf(config, state, request)
  const { firstKey } = state
  const key = firstKey
    ? `${firstKey}\n            Keep it: it is not shown again.`
    : `for a new one: ${config.keysCommand} create NAME --expires 90d`
  return `${TITLE} is running.

  REST      ${rest}
  tRPC      ${trpc}
  OpenAPI   ${openapi}
  Docs      ${docs}
  Links     ${links} (set BASE_URL where clients use another port or name)
  Database  ${database}
  API key   ${key}

A first request:

  curl ${rest} -H 'Authorization: Bearer ${firstKey ?? '<API_KEY>'}' \\
    -H 'Content-Type: application/json' -d '${request.body}' -w '\\n'
`
}
