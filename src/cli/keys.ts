/** `npm run keys`: creates, lists, rotates and revokes API keys. */
import path from 'node:path'
import { MIGRATIONS, type RootDatabase } from '../../db/index.ts'
import type { Config } from '../config/config.ts'
import { readSecret, UsageError } from '../config/environment.ts'
import { isReadOnlyKey, KEY_LIFETIME, visiblePrefix } from '../keys/key.ts'
import {
  bringKey,
  createKey,
  createKeyIfNone,
  listKeys,
  revokeKey,
  rotateKey,
} from '../keys/store.ts'
import { command, print, printList, withMigratedDatabase } from '../process/programs.ts'
import { replaceBigints } from '../surface/rest/exact-json.ts'
import { readArguments } from './key-arguments.ts'

const help = `Usage: npm run keys -- COMMAND [OPTIONS]

  create NAME --expires 90d | --forever [--read-only] [--if-none | --key-file FILE]
               creates a key, and prints it on stdout, this once; it ends after --expires, and with
               --read-only may only call operations that change nothing; with --if-none only if
               there never was a key; --key-file brings the key of a file, and may run again
  list         lists all keys, without their secrets; times are UTC
  rotate ID [--grace 24h]
               replaces a key by one of the same name, lifetime and rights; the old key works for
               --grace more (0s: not at all; by default 24h)
  revoke ID    ends a key; every instance notices within ${KEY_LIFETIME / 1000} seconds

With --json, they print JSON on stdout, for scripts. Durations are a number and a unit: 30s, 15m, 24h, 90d.`

async function run(config: Config, location: string): Promise<void> {
  const given = readArguments(process.argv.slice(2))
  const printNew = async ({ id, key }: { id: bigint; key: string }) => {
    await print(given.json ? toJson({ id, key }) : key).catch(({ message }) => {
      throw new UsageError(`${message}. The new key ${id} of ${location} is lost: revoke it`)
    })
    const lasts = given.COMMAND === 'create' && given.forever ? ', and never ends' : ''
    console.error(`Key ${id} of ${location} is on stdout${lasts}. Keep it: it is not shown again.`)
  }
  const brought = given.COMMAND === 'create' ? keyToBring(given, config) : undefined
  const onDatabase = async (db: RootDatabase, migrated: string[]) => {
    // The service may have another DATABASE_URL, such as that of its container.
    if (migrated.length === MIGRATIONS.length) console.error(`Created the database ${location}`)
    if (given.COMMAND === 'create') {
      const terms = { lifetime: given.expires, readOnly: given['read-only'] }
      if (brought) {
        const readOnly = isReadOnlyKey(brought)
        const { id, state } = await bringKey(db, given.NAME, { ...terms, readOnly, key: brought })
        if (state !== 'new' && state !== 'working')
          throw new UsageError(`The key in ${given['key-file']} is ${state}: bring another one`)
        console.error(`Key ${id} of ${location} is the one in ${given['key-file']}`)
        if (given.json) await print(toJson({ id }))
      } else if (given['if-none']) {
        const made = await createKeyIfNone(db, given.NAME, terms)
        if (made) await printNew(made)
        else console.error(`${location} has API keys, so none was created`)
      } else await printNew(await createKey(db, given.NAME, terms))
    } else if (given.COMMAND === 'list') {
      const all = await listKeys(db)
      await printList(given.json ? toJson(all) : tableOf(all))
    } else if (given.COMMAND === 'rotate') {
      await printNew((await rotateKey(db, given.ID, given.grace)) ?? refuse(given))
    } else {
      if (!(await revokeKey(db, given.ID))) refuse(given)
      console.error(`Key ${given.ID} stops working within ${KEY_LIFETIME / 1000} seconds`)
      if (given.json) await print(toJson({ id: given.ID }))
    }
  }
  // The others would answer from a new, empty database, where a mistake has led them.
  await withMigratedDatabase(config, onDatabase, console.error, given.COMMAND === 'create')
}

/** Returns the key in the file of `--key-file`; undefined without that option. Throws UsageError. */
function keyToBring(
  given: { 'key-file'?: string | undefined; 'if-none': boolean; 'read-only': boolean },
  { callerFolder }: Config,
): string | undefined {
  const file = given['key-file']
  if (!file) return undefined
  if (given['if-none']) throw new UsageError('Give --if-none or --key-file, not both')
  const key = readSecret('--key-file', callerFolder ? path.resolve(callerFolder, file) : file)
  if (!visiblePrefix(key))
    throw new UsageError(
      `${file} must have petstore_ or petstore_read_ and 32 random bytes in base64url`,
    )
  if (given['read-only'] && !isReadOnlyKey(key))
    throw new UsageError(`The key in ${file} must begin with petstore_read_ to be read-only`)
  return key
}

function refuse({ COMMAND, ID }: { COMMAND: string; ID: bigint }): never {
  throw new UsageError(`There is no key to ${COMMAND} with the ID ${ID}; see list`)
}

/** What could forge lines of the list: line breaks, colours, a text direction. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

function tableOf(keys: Awaited<ReturnType<typeof listKeys>>): string {
  const rows = keys.map((key) => [
    String(key.id),
    key.name.replaceAll(UNPRINTABLE, (text) => `\\u{${text.codePointAt(0)?.toString(16)}}`),
    `${key.prefix}…`,
    key.state,
    key.readOnly ? 'read' : 'read, write',
    ...[key.createdAt, key.expiresAt, key.lastUsedAt].map(
      (time) => time?.toISOString().slice(0, -8).replace('T', ' ') ?? '-',
    ),
  ])
  const title = ['ID', 'NAME', 'KEY', 'STATE', 'MAY', 'CREATED (UTC)', 'EXPIRES', 'LAST USED']
  const table = [title, ...rows]
  const widths = title.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return table.map((row) => line(row).join('  ').trimEnd()).join('\n')
}

const toJson = (value: object): string => JSON.stringify(replaceBigints(value))

if (process.argv.includes('--help')) console.log(help)
else await command(run)
