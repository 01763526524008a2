/** What a person who starts the service wants to read. */
import { describeUrl } from '../db/connect.ts'
import type { Database } from '../db/tables.ts'
import type { Config } from './config.ts'
import { createFirstKey, hasKeys } from './keys/store.ts'

/**
 * Addresses, database, key, and a first request. Where the embedded database has no key yet, one
 * is made, and this text is the only place where it is ever shown.
 */
export async function startText(db: Database, config: Config, port: number): Promise<string> {
  const local = `http://localhost:${port}`
  const { engine, address } = describeUrl(config.databaseUrl)
  const key = await firstKey(db, engine)
  return [
    `Petstore is running.`,
    ``,
    `  REST      ${local}/v1/pets`,
    `  tRPC      ${local}/trpc`,
    `  OpenAPI   ${local}/v1/openapi.json, shown at ${local}/docs/`,
    `  Database  ${engine === 'sqlite' ? 'SQLite, embedded' : 'MySQL'}: ${address}`,
    ``,
    ...keyLines(key),
    ``,
    `Add a first animal:`,
    ``,
    `  curl ${local}/v1/pets -H 'Authorization: Bearer ${key.text ?? '<API_KEY>'}' \\`,
    `    -H 'Content-Type: application/json' -d '{"name": "Rex", "categoryId": 1}'`,
    ``,
  ].join('\n')
}

interface FirstKey {
  exists: boolean
  /** The key itself, when it was made just now. */
  text: string | undefined
}

async function firstKey(db: Database, engine: string): Promise<FirstKey> {
  if (await hasKeys(db)) return { exists: true, text: undefined }
  if (engine !== 'sqlite') return { exists: false, text: undefined }
  return { exists: true, text: await createFirstKey(db, 'first key') }
}

function keyLines({ exists, text }: FirstKey): string[] {
  if (text) return [`  API key   ${text}`, `            Keep it: it is not shown again.`]
  const make = 'npm run keys -- create NAME'
  return exists
    ? [`  API key   one of those made before; for another: ${make}`]
    : [`  API key   there is none yet; make one: ${make}`]
}
