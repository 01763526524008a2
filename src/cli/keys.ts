/** `npm run keys`: creates, lists, rotates and revokes API keys. */
import { parseArgs } from 'node:util'
import type { Database } from '../../db/tables.ts'
import { parseDuration } from '../config/duration.ts'
import { KEY_LIFETIME } from '../keys/key.ts'
import type { ApiKey, NewApiKey } from '../keys/store.ts'
import { textInput } from '../procedure/fields.ts'
import { print, UsageError, withDatabase } from '../process/program.ts'
import { command, databaseLocation } from './command.ts'

const help = `Usage: npm run keys -- COMMAND [OPTIONS]

  create NAME [--expires 90d] [--read-only]
                                create a key, and print it on stdout, this once
  list                          list all keys, without their secrets; times are UTC
  rotate ID [--grace 24h]       replace a key with one of the same name, lifetime and rights; the old key
                                works until the grace period ends
  revoke ID                     end a key

Options
  --expires DURATION   lifetime of the new key (default: until it is revoked)
  --read-only          the new key may only call operations that change nothing
  --grace DURATION     how long the old key still works (default: 24h; 0s revokes it)
  --json               print JSON on stdout, for scripts
  --help               print this text

A DURATION is a number and a unit, such as 30s, 15m, 24h or 90d.
A revoked key stops working within ${KEY_LIFETIME / 1000} seconds on every instance.`

/** What could forge lines of the list: line breaks, colours, a text direction. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** The last time of a Date, in the year 275760, in milliseconds since 1970. */
const LAST_TIME = 8_640_000_000_000_000

/** Runs a command on the keys of a database. */
type Action = (db: Database, keys: typeof import('../keys/store.ts')) => Promise<void>

if (process.argv.includes('--help')) console.log(help)
else {
  await command(async (config) => {
    const act = readAction(readArguments(), databaseLocation(config))
    const keys = await import('../keys/store.ts')
    await withDatabase(config, (db) => act(db, keys))
  })
}

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: {
        expires: { type: 'string' },
        grace: { type: 'string' },
        'read-only': { type: 'boolean' },
        json: { type: 'boolean', default: false },
      },
    })
    const [action = '', ...operands] = positionals
    return { action, operands, ...values }
  } catch (error) {
    const [problem] = (error as Error).message.split(/\.\s/)
    throw new UsageError(`${problem}; see --help`)
  }
}

/** Returns the action of the arguments. Throws UsageError before the database is opened. */
function readAction(given: ReturnType<typeof readArguments>, location: string): Action {
  const { action, operands, json } = given
  const commands = { expires: 'create', 'read-only': 'create', grace: 'rotate' } as const
  for (const [option, command] of Object.entries(commands)) {
    if (given[option as keyof typeof commands] !== undefined && action !== command)
      throw new UsageError(`--${option} is an option of ${command} only`)
  }
  const operand = (what: string) => {
    const [value = '', extra] = operands
    if (value === '') throw new UsageError(`${action} needs ${what}; see --help`)
    if (extra === undefined) return value
    throw new UsageError(`${action} takes one argument: put quotes around "${operands.join(' ')}"`)
  }
  switch (action) {
    case 'create': {
      const name = readName(operand('a NAME'))
      const { expires } = given
      const lifetime = expires === undefined ? undefined : duration('--expires', expires, 1)
      const terms = { lifetime, readOnly: given['read-only'] === true }
      return async (db, keys) =>
        await printNew(await keys.createKey(db, name, terms), location, json)
    }
    case 'list':
      if (operands[0] === undefined)
        return async (db, keys) => await print(listText(await keys.listKeys(db), json))
      throw new UsageError(`list takes no argument, but got "${operands[0]}"`)
    case 'rotate': {
      const id = readId(operand('the ID of a key'))
      const grace = duration('--grace', given.grace ?? '24h')
      return async (db, keys) =>
        await printNew((await keys.rotateKey(db, id, grace)) ?? unknown(id), location, json)
    }
    case 'revoke': {
      const id = readId(operand('the ID of a key'))
      return async (db, keys) => {
        if (!(await keys.revokeKey(db, id))) unknown(id)
        console.error(`Key ${id} stops working within ${KEY_LIFETIME / 1000} seconds`)
        if (json) await print(toJson({ id }))
      }
    }
    default:
      throw new UsageError('A COMMAND is missing: create, list, rotate or revoke; see --help')
  }
}

/** Returns a name by the rules of all texts, such as the name of a pet. */
function readName(text: string): string {
  const { data, error } = textInput({ description: '' }).safeParse(text)
  if (data === undefined) throw new UsageError(`NAME ${error?.issues[0]?.message}`)
  return data
}

function readId(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw new UsageError(`"${text}" is not the ID of a key; see list`)
  return BigInt(text)
}

function duration(option: string, text: string, least = 0): number {
  const milliseconds = parseDuration(text)
  if (milliseconds !== undefined && milliseconds >= least) return milliseconds
  throw new UsageError(
    `${option} must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "${text}"`,
  )
}

function unknown(id: bigint): never {
  throw new UsageError(`There is no working key with the ID ${id}; see list`)
}

async function printNew(made: NewApiKey, location: string, json: boolean): Promise<void> {
  await print(json ? toJson(made) : made.key).catch(({ message }) => {
    throw new UsageError(`${message}. The new key ${made.id} of ${location} is lost: revoke it`)
  })
  console.error(`This is key ${made.id} of ${location}. Keep it: it is not shown again.`)
}

function listText(keys: ApiKey[], json: boolean): string {
  const shown = keys.map(({ createdAt, expiresAt, revokedAt, lastUsedAt, ...key }) => ({
    ...key,
    createdAt: timeText(createdAt),
    expiresAt: timeText(expiresAt),
    revokedAt: timeText(revokedAt),
    lastUsedAt: timeText(lastUsedAt),
  }))
  if (json) return toJson(shown)
  const rows = shown.map((key) => [
    String(key.id),
    key.name.replaceAll(UNPRINTABLE, (text) => `\\u{${text.codePointAt(0)?.toString(16)}}`),
    `${key.prefix}…`,
    key.state,
    key.readOnly ? 'read' : 'read, write',
    ...[key.createdAt, key.expiresAt, key.lastUsedAt].map(
      (time) => time?.slice(0, -8).replace('T', ' ') ?? '-',
    ),
  ])
  const title = ['ID', 'NAME', 'KEY', 'STATE', 'MAY', 'CREATED (UTC)', 'EXPIRES', 'LAST USED']
  const table = [title, ...rows]
  const widths = title.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return table.map((row) => line(row).join('  ').trimEnd()).join('\n')
}

/** Returns a time in ISO 8601. A column may have a time beyond those of a Date. */
function timeText(time: bigint | undefined): string | undefined {
  return time === undefined ? time : new Date(Math.min(Number(time), LAST_TIME)).toISOString()
}

/** Returns JSON with all digits of the ids. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, item) =>
    typeof item === 'bigint' ? JSON.rawJSON(String(item)) : item,
  )
}
