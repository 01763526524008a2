/** `npm run keys`: creates, lists, rotates and revokes API keys. */
import path from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import type { RootDatabase } from '../../db/database.ts'
import { MIGRATIONS } from '../../db/migrations.ts'
import { type Config, duration } from '../config/config.ts'
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
import { textInput } from '../procedure/fields.ts'
import { command, print, withDatabase } from '../process/programs.ts'
import { replaceBigints } from '../surface/rest/exact-json.ts'

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

const ID = z
  .string('is missing (see list)')
  .refine(
    (text) => /^\d+$/.test(text) && BigInt(text) < 2n ** 63n,
    'must be that of a key (see list)',
  )
  .transform(BigInt)
const flag = z.boolean('takes no value').default(false)
const takes = <Fields extends z.ZodRawShape>(fields: Fields) =>
  z.strictObject({ ...fields, json: flag }, { error: (issue) => `takes no ${issue.keys}` })

const NO_END =
  'must have --expires DURATION or --forever, as in npm run keys -- create NAME --expires 90d (npm takes what has no -- before it)'

const Arguments = z.discriminatedUnion(
  'COMMAND',
  [
    takes({
      COMMAND: z.literal('create'),
      NAME: textInput({ description: '' }), // as that of a pet
      expires: duration('1ms').optional(),
      forever: flag,
      'read-only': flag,
      'if-none': flag,
      'key-file': z.string('takes a FILE').min(1, 'takes a FILE').optional(),
    })
      // A key without an end is asked for in words: npm may have taken an --expires.
      .refine(({ expires, forever }) => expires !== undefined || forever, NO_END)
      .refine(
        ({ expires, forever }) => expires === undefined || !forever,
        'takes --expires or --forever, not both',
      ),
    takes({ COMMAND: z.literal('list') }),
    takes({ COMMAND: z.literal('rotate'), ID, grace: duration('0s').prefault('24h') }),
    takes({ COMMAND: z.literal('revoke'), ID }),
  ],
  'must be create, list, rotate or revoke',
)

/** Returns the arguments. Throws UsageError. */
function readArguments() {
  const [text, toggle] = [{ type: 'string' }, { type: 'boolean' }] as const
  const options = {
    ...{ expires: text, grace: text, 'key-file': text },
    ...{ forever: toggle, 'read-only': toggle, 'if-none': toggle, json: toggle },
  }
  const { positionals, values } = parseArgs({ strict: false, allowPositionals: true, options })
  const [COMMAND, operand, second] = positionals
  const { data, error } = Arguments.safeParse({
    COMMAND,
    ...(operand !== undefined && { [COMMAND === 'create' ? 'NAME' : 'ID']: operand }),
    ...(second !== undefined && { 'second argument: put quotes around a name': second }),
    ...values,
  })
  if (data) return data
  const [issue] = error.issues as [z.core.$ZodIssue] // an error has an issue
  throw new UsageError(`${String(issue.path[0] ?? COMMAND)} ${issue.message}; see --help`)
}

async function run(config: Config, location: string): Promise<void> {
  const given = readArguments()
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
      await print(given.json ? toJson(all) : tableOf(all))
    } else if (given.COMMAND === 'rotate') {
      await printNew((await rotateKey(db, given.ID, given.grace)) ?? refuse(given))
    } else {
      if (!(await revokeKey(db, given.ID))) refuse(given)
      console.error(`Key ${given.ID} stops working within ${KEY_LIFETIME / 1000} seconds`)
      if (given.json) await print(toJson({ id: given.ID }))
    }
  }
  // The others would answer from a new, empty database, where a mistake has led them.
  await withDatabase(config, onDatabase, console.error, given.COMMAND === 'create')
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
