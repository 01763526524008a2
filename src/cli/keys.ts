/** `npm run keys`: creates, lists, rotates and revokes API keys. */
import { parseArgs } from 'node:util'
import type { Database } from '../../db/tables.ts'
import { parseDuration } from '../config/duration.ts'
import { KEY_LIFETIME } from '../keys/key.ts'
import type { ApiKey, NewApiKey } from '../keys/store.ts'
import { print, UsageError } from '../process/program.ts'
import { command, databaseLocation, withDatabase } from './command.ts'

const help = `Usage: npm run keys -- COMMAND [OPTIONS]

  create NAME [--expires 90d] [--read-only]
                                create a key, and print it on stdout, this once
  list                          list all keys, without their secrets
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

type Arguments = ReturnType<typeof readArguments>

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
    const [action, ...operands] = positionals
    return { action, operands, ...values }
  } catch (error) {
    const [problem] = (error as Error).message.split(/\.\s/)
    throw new UsageError(`${problem}; see --help`)
  }
}

/** Returns the action of the arguments. Throws UsageError before the database is opened. */
function readAction(given: Arguments, location: string): Action {
  const { action, json } = given
  const commands = { expires: 'create', 'read-only': 'create', grace: 'rotate' } as const
  for (const [option, command] of Object.entries(commands)) {
    if (given[option as keyof typeof commands] !== undefined && action !== command)
      throw new UsageError(`--${option} is an option of ${command} only`)
  }
  switch (action) {
    case 'create': {
      const name = readName(given)
      const expiresAt = given.expires === undefined ? undefined : after('--expires', given.expires)
      const terms = { expiresAt, readOnly: given['read-only'] === true }
      return async (db, keys) =>
        await printNew(await keys.createKey(db, name, terms), location, json)
    }
    case 'list': {
      const [extra] = given.operands
      if (extra !== undefined) throw new UsageError(`list takes no argument, but got "${extra}"`)
      return async (db, keys) => await print(listText(await keys.listKeys(db), json))
    }
    case 'rotate': {
      const id = readId(given)
      const graceUntil = after('--grace', given.grace ?? '24h')
      return async (db, keys) => {
        const created = await keys.rotateKey(db, id, graceUntil).catch((error) => {
          if (!(error instanceof keys.ChangedMeanwhileError)) throw error
          throw new UsageError(`The key ${id} was rotated or revoked at the same moment; see list`)
        })
        await printNew(created ?? unknown(id), location, json)
      }
    }
    case 'revoke': {
      const id = readId(given)
      return async (db, keys) => {
        if (!(await keys.revokeKey(db, id))) unknown(id)
        console.error(`Key ${id} stops working within ${KEY_LIFETIME / 1000} seconds`)
        if (json) await print(JSON.stringify({ id: Number(id) }))
      }
    }
    default:
      throw new UsageError('A COMMAND is missing: create, list, rotate or revoke; see --help')
  }
}

function operand({ action, operands }: Arguments, what: string): string {
  const [value = '', extra] = operands
  if (value.trim() === '') throw new UsageError(`${action} needs ${what}; see --help`)
  if (extra !== undefined)
    throw new UsageError(`${action} takes one argument: put quotes around "${operands.join(' ')}"`)
  return value
}

function readName(given: Arguments): string {
  const name = operand(given, 'a NAME')
  if ([...name].length > 255) throw new UsageError('NAME must have at most 255 characters')
  // Line breaks, colours, invisible characters or a text direction could forge lines of the list.
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(name)) {
    throw new UsageError('NAME must not have control or invisible characters')
  }
  return name
}

function readId(given: Arguments): bigint {
  const text = operand(given, 'the ID of a key')
  if (!/^\d{1,18}$/.test(text)) throw new UsageError(`"${text}" is not the ID of a key; see list`)
  return BigInt(text)
}

function after(option: string, text: string): Date {
  const duration = parseDuration(text)
  if (duration === undefined || (duration === 0 && option === '--expires')) {
    throw new UsageError(
      `${option} must be a number and a unit, such as 30s, 15m, 24h or 90d, at most a century, not "${text}"`,
    )
  }
  return new Date(Date.now() + duration)
}

function unknown(id: bigint): never {
  throw new UsageError(`There is no working key with the ID ${id}; see list`)
}

async function printNew({ id, key }: NewApiKey, location: string, json: boolean): Promise<void> {
  await print(json ? JSON.stringify({ id: Number(id), key }) : key).catch(({ message }) => {
    throw new UsageError(`${message}. The new key ${id} of ${location} is lost: revoke it`)
  })
  console.error(`This is key ${id} of ${location}. Keep it: it is not shown again.`)
}

function listText(keys: ApiKey[], json: boolean): string {
  if (json) return JSON.stringify(keys.map((key) => ({ ...key, id: Number(key.id) })))
  const rows = keys.map((key) => [
    String(key.id),
    key.name,
    `${key.prefix}…`,
    key.state,
    key.readOnly ? 'read' : 'read, write',
    day(key.createdAt),
    day(key.expiresAt),
    day(key.lastUsedAt),
  ])
  return tableText([
    ['ID', 'NAME', 'KEY', 'STATE', 'MAY', 'CREATED', 'EXPIRES', 'LAST USED'],
    ...rows,
  ])
}

function day(date: Date | undefined): string {
  return date?.toISOString().slice(0, 16).replace('T', ' ') ?? '-'
}

function tableText(rows: string[][]): string {
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return lines.join('\n')
}
