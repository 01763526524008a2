/** The limit on the memory that clients hold. */
import { expect, test } from 'vitest'
import { Backlog } from '../../src/http/backlog.ts'

test('as many holders are destroyed as bring the sum back to the limit, the oldest first', () => {
  const backlog = new Backlog(100)
  const destroyed: string[] = []
  const holder = (name: string) => ({ destroy: () => void destroyed.push(name) })
  for (const name of ['first', 'second', 'third']) backlog.set(holder(name), 10)
  backlog.set(holder('large'), 85)
  expect(destroyed).toEqual(['first', 'second'])
  backlog.set(holder('last'), 5)
  expect(destroyed).toEqual(['first', 'second'])
})
