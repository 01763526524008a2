/** The text that a start prints for the person at the terminal. */
import { describeUrl } from '../../db/url.ts'
import { TITLE } from '../config/product.ts'
import type { FirstKey } from '../keys/first.ts'
import type { Composition } from './composition.ts'

/** Returns URLs, database, API key, a first request to paste, and where to go on from there. */
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
    `  OpenAPI   ${local}/v1/openapi.json`,
    `  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${address}`,
    ``,
    ...keyLines(firstKey),
    ``,
    `A first request:`,
    ``,
    `  curl ${local}/v1${path} -H 'Authorization: Bearer ${firstKey.key ?? '<API_KEY>'}' \\`,
    `    -H 'Content-Type: application/json' -d '${body}' -w '\\n'`,
    ``,
    `All operations, to read and to try:`,
    ``,
    `  ${local}/docs/`,
    ``,
    `In another terminal:`,
    ``,
    `  npm run seed         adds sample data`,
    `  npm run storefront   starts an example shop`,
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
