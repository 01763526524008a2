/** The start-up text for the terminal. */
import { describeUrl } from '../../db/url.ts'
import { TITLE } from '../config/product.ts'
import type { FirstKey } from '../keys/first.ts'
import type { Composition } from './composition.ts'

/** Returns the URLs, the database, the API key, a first request to paste, and the next steps. */
export function startText(
  databaseUrl: string,
  port: number,
  firstKey: FirstKey,
  { path, body }: Composition['firstRequest'],
): string {
  const local = `http://localhost:${port}`
  const { engine, location } = describeUrl(databaseUrl)
  return [
    `${TITLE} is running.`,
    ``,
    `  REST      ${local}/v1${path}`,
    `  tRPC      ${local}/trpc`,
    `  OpenAPI   ${local}/v1/openapi.json`,
    `  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${location}`,
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
  const command = 'npm run keys -- create NAME'
  return exists
    ? [`  API key   created before; for a new one: ${command}`]
    : [`  API key   none yet; create one: ${command}`]
}
