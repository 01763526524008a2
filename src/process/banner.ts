/** What a person who starts the service wants to read. */
import { describeUrl } from '../../db/url.ts'
import { TITLE } from '../config/product.ts'
import type { FirstKey } from '../keys/first.ts'
import type { Composition } from './composition.ts'

/** Addresses, database, key, and a first request to paste. */
export function startText(
  databaseUrl: string,
  port: number,
  firstKey: FirstKey,
  { path, body }: Composition['firstRequest'],
): string {
  const local = `http://localhost:${port}`
  const { engine, address } = describeUrl(databaseUrl)
  return [
    `${TITLE} is running.`,
    ``,
    `  REST      ${local}/v1${path}`,
    `  tRPC      ${local}/trpc`,
    `  OpenAPI   ${local}/v1/openapi.json, shown at ${local}/docs/`,
    `  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${address}`,
    ``,
    ...keyLines(firstKey),
    ``,
    `A first request:`,
    ``,
    `  curl ${local}/v1${path} -H 'Authorization: Bearer ${firstKey.key ?? '<API_KEY>'}' \\`,
    `    -H 'Content-Type: application/json' -d '${body}' -w '\\n'`,
    ``,
  ].join('\n')
}

function keyLines({ exists, key }: FirstKey): string[] {
  if (key) return [`  API key   ${key}`, `            Keep it: it is not shown again.`]
  const make = 'npm run keys -- create NAME'
  return exists
    ? [`  API key   one of those made before; for another: ${make}`]
    : [`  API key   there is none yet; make one: ${make}`]
}
