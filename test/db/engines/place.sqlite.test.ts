/** The look at the files of a database that is open, while another connection writes. */
import { closeSync, fstatSync, openSync, statSync, truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { isWhole, Place } from '../../../db/engines/sqlite/place.ts'
import { newFolder } from '../../support/database.ts'

test.each([512, 4_096, 65_536])(
  'of pages of %i bytes, a log that is emptied after its last copy is whole, and one that is cut is not',
  (pageSize) => {
    const file = `${newFolder()}/pages.db`
    using database = new DatabaseSync(file)
    database.exec(
      `pragma page_size = ${pageSize}; pragma journal_mode = wal; create table pets (name)`,
    )
    const [log, index] = [openSync(`${file}-wal`, 'r'), openSync(`${file}-shm`, 'r')]
    const size = () => fstatSync(log).size
    const looks: number[] = []
    const emptied = () => {
      if (looks.length === 0) database.exec('pragma wal_checkpoint(truncate)')
      looks.push(size())
      return size()
    }
    expect(isWhole(index, false, emptied)).toBe(true)
    expect(looks).toEqual([0, 0]) // the second look is at the index that belongs to it
    database.exec("insert into pets values ('Rex')")
    expect(isWhole(index, false, size)).toBe(true)
    truncateSync(`${file}-wal`, size() - 1)
    expect(isWhole(index, false, size)).toBe(false)
    closeSync(log)
    closeSync(index)
  },
)

test('a log that is cut after its frames were copied is not whole: beside a reader, SQLite would write behind the gap', () => {
  const file = `${newFolder()}/copied.db`
  using database = new DatabaseSync(file)
  database.exec('pragma journal_mode = wal; create table pets (name)')
  const place = new Place(file)
  database.exec('pragma wal_checkpoint(passive)')
  place.check()
  truncateSync(`${file}-wal`, statSync(`${file}-wal`).size - 1)
  const message = expect.stringMatching(/^copied\.db-wal, a part of the database, was shortened/)
  expect(() => place.check()).toThrow(
    expect.objectContaining({ cause: expect.objectContaining({ message }) }),
  )
  place.close()
})
