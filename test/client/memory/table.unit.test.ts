/** The tables of the stand-in do what those of the databases do. */
import { expect, test } from 'vitest'
import { Table, type Undo } from '../../../client/src/memory/table.ts'
import { DuplicateError } from '../../../db/errors.ts'
import { int64Cursor, type Position, timeCursor } from '../../../src/procedure/paging.ts'

interface Owner {
  id: bigint
  name: string
  /** Unique. */
  mail: string | null
}
const owner = (name: string, mail: string | null = null) => ({ name, mail })

test('a unique value is taken once, and null is none', () => {
  const owners = new Table<Owner>([owner('Ada', 'a'), owner('Eve'), owner('Eve')], ['mail'])
  const [ada, eve] = owners.rows as [Owner, Owner, Owner]
  expect(() => owners.insert(owner('Zoe', 'a'))).toThrow(DuplicateError)
  expect(() => owners.update(eve, { mail: 'a' })).toThrow(DuplicateError)
  owners.update(ada, { mail: 'a', name: 'Ada L.' })
  expect(owners.insert(owner('Zoe', 'z'))).toBe(4n)
  expect(owners.get(1n)).toEqual({ id: 1n, name: 'Ada L.', mail: 'a' })
  expect(owners.get(5n)).toBeUndefined()
})

test('the changes of a transaction are undone in reverse, and no id is assigned again', () => {
  const owners = new Table<Owner>([owner('Ada'), owner('Eve'), owner('Zoe')])
  const before = structuredClone(owners.rows)
  const undo: Undo[] = []
  const [ada, eve] = owners.rows as [Owner, Owner, Owner]
  owners.insert(owner('Lin'), undo)
  owners.update(eve, { name: 'Eva' }, undo)
  owners.remove(ada, undo)
  owners.remove(eve, undo)
  expect(owners.rows.map(({ name }) => name)).toEqual(['Zoe', 'Lin'])
  for (const step of undo.reverse()) step()
  expect(owners.rows).toEqual(before)
  expect(owners.insert(owner('Lin'))).toBe(5n)
})

test('a page is by id or by a text, in the order of code points, after the cursor and with a filter', () => {
  // In code points, the last one comes after the one before it; in UTF-16, it does not.
  const names = ['b', 'a', 'a', 'ab', 'B', 'a\uff01', 'a\u{1f415}']
  const owners = new Table<Owner>(names.map((name) => owner(name)))
  const ids = (...parameters: Parameters<typeof owners.page>) =>
    owners.page(...parameters).items.map(({ id }) => Number(id))
  expect(ids({ limit: 10 })).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(ids({ limit: 2, cursor: 3n })).toEqual([4, 5])
  expect(ids({ limit: 2, cursor: 3n }, { order: 'descending' })).toEqual([2, 1])
  expect(ids({ limit: 10 }, { by: 'name' })).toEqual([5, 2, 3, 4, 6, 7, 1])
  const after = (id: bigint, value: string) => ({ limit: 2, cursor: { id, value } })
  expect(ids(after(2n, 'a'), { by: 'name' })).toEqual([3, 4])
  expect(ids(after(3n, 'a'), { by: 'name', order: 'descending' })).toEqual([2, 5])
  expect(ids({ limit: 10 }, { where: ({ name }) => name.length === 1 })).toEqual([1, 2, 3, 5])
  expect(owners.page({ limit: 6 }).next).toBe(6n)
  expect(owners.page({ limit: 3 }, { by: 'name' }).next).toBe('3 a')
  expect(owners.page({ limit: 7 }).next).toBeUndefined()
})

test('a page by a time or an integer is in their order, and its cursor is what the schema reads', () => {
  // By weekday, or by digits, the order would be another one.
  const rows = ['2026-01-02', '2026-01-04', '2025-12-31', '2026-01-04'].map((day, at) => ({
    at: new Date(day),
    weight: [9n, 10n, -3n, 10n][at] as bigint,
  }))
  const table = new Table<{ id: bigint; at: Date; weight: bigint }>(rows)
  for (const [by, schema, next] of [
    ['at', timeCursor('things', 'at'), '2026-01-02T00:00:00.000Z 1'],
    ['weight', int64Cursor('things', 'weight'), '9 1'],
  ] as const) {
    const ids: bigint[] = []
    let cursor: Position<bigint> | undefined
    do {
      const page = table.page({ limit: 1, cursor }, { by })
      ids.push(...page.items.map(({ id }) => id))
      cursor = schema.parse(page.next)
    } while (cursor && ids.length < 9)
    expect(ids).toEqual([3n, 1n, 2n, 4n])
    expect(table.page({ limit: 2 }, { by }).next).toBe(next)
    const latest = table.page({ limit: 3 }, { by, order: 'descending' })
    expect(latest.items.map(({ id }) => id)).toEqual([4n, 2n, 1n])
  }
  // Beyond int64, it is the nearest one.
  const great = '9999999999999999999'
  const [least, greatest] = [-(2n ** 63n), 2n ** 63n - 1n]
  const cursor = int64Cursor('things', 'weight')
  expect(cursor.parse(`${great} ${great}`)).toEqual({ id: greatest, value: greatest })
  expect(cursor.parse(`-${great} 7`)).toEqual({ id: 7n, value: least })
})
