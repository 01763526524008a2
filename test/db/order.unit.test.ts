/** The order of the rows of a union, which a server may return in any order. */
import { expect, test } from 'vitest'
import { BY_ID, orderBy, sortPlain } from '../../db/order.ts'

const MAX = 2n ** 63n - 1n

test('rows are sorted by an ascending or a descending int64', () => {
  const shuffled = () => [2n, -1n, MAX, 10n, MAX - 1n, 0n].map((id) => ({ id, name: `Pet ${id}` }))
  const ascending = shuffled()
  sortPlain(ascending, BY_ID)
  expect(ascending.map(({ id }) => id)).toEqual([-1n, 0n, 2n, 10n, MAX - 1n, MAX])
  expect(ascending.at(1)).toEqual({ id: 0n, name: 'Pet 0' })

  const newestFirst = orderBy([{ column: 'id', type: 'int64', direction: 'descending' }])
  const descending = shuffled()
  sortPlain(descending, newestFirst)
  expect(descending.map(({ id }) => id)).toEqual([MAX, MAX - 1n, 10n, 2n, 0n, -1n])
})
