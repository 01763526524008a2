/** The listeners of a deadline. */
import { expect, test } from 'vitest'
import { Deadline } from '../../db/deadline.ts'

test('each listener is called once, except those that were removed, even twice', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const listen = (name: string) =>
    deadline.onGiveUp(({ message }) => called.push(`${name}: ${message}`))
  const removeFirst = listen('first')
  listen('second')
  listen('third')
  removeFirst()
  removeFirst()
  deadline.giveUp(new Error('over'))
  deadline.giveUp(new Error('again'))
  removeFirst()
  listen('late')
  expect(called).toEqual(['second: over', 'third: over', 'late: over'])
  expect(deadline.reason?.message).toBe('over')
})
