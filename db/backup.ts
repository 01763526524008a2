/** Copies of an embedded database, made and put back while others use it. */
import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'

/** Pages in one step: all, for a copy in several steps begins anew whenever somebody writes. */
const ALL_PAGES = 2 ** 31 - 1

/** Milliseconds that others may hold the database, and between two attempts. */
const PATIENCE = 30_000
const INTERVAL = 5

/**
 * Copies the database at `path`, as it is at one moment, into a `file` of its own, which is there
 * when it is whole. Who writes meanwhile does not wait. Throws what the disk or SQLite throws.
 */
export async function backUp(path: string, file: string): Promise<void> {
  const part = `${file}.part`
  const source = new DatabaseSync(path)
  try {
    // It holds the names and hashes of keys; a file of this name that is there is somebody's.
    closeSync(openSync(part, 'wx', 0o600))
    try {
      await copy(source, part)
      const made = new DatabaseSync(part)
      // One file, without a log beside it, can be read where nobody may write.
      made.exec('pragma journal_mode = delete')
      made.close()
      renameSync(part, file)
    } finally {
      rmSync(part, { force: true })
    }
  } finally {
    source.close()
  }
}

/**
 * Puts the content of a backup in the place of all that is in the database at `path`, at one moment;
 * where there is none it is made, with its folder. Throws for a file that is no whole database of this service, and
 * what the disk or SQLite throws; then nothing has changed.
 */
export async function restore(path: string, file: string): Promise<void> {
  const source = new DatabaseSync(file, { readOnly: true })
  try {
    const [first] = source.prepare('pragma integrity_check').all()
    if (first?.integrity_check !== 'ok') throw new Error('the file is damaged')
    source.prepare('select name from kysely_migration').get()
    source.prepare('select id, name, prefix, hash, created_at from api_keys limit 1').get()
    mkdirSync(dirname(path), { recursive: true })
    closeSync(openSync(path, 'a', 0o600))
    await copy(source, path)
  } finally {
    source.close()
  }
}

async function copy(source: DatabaseSync, path: string): Promise<void> {
  const end = performance.now() + PATIENCE
  for (;;) {
    try {
      await backup(source, path, { rate: ALL_PAGES })
      return
    } catch (cause) {
      // node:sqlite does not wait for who holds the database: it fails, with 0 for its reason.
      if ((cause as { errcode?: number }).errcode !== 0) throw cause
      if (performance.now() > end) throw new Error('others hold the database', { cause })
      await setTimeout(INTERVAL)
    }
  }
}
