/** The listeners of a deadline, and answers that arrive in time. */
import { stat } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import { outOfThree } from '../support/eventually.ts'

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

test('a listener that removes itself does not affect the next one', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const removeFirst = deadline.onGiveUp(() => {
    removeFirst()
    called.push('first')
  })
  deadline.onGiveUp(() => called.push('second'))
  deadline.giveUp(new Error('over'))
  expect(called).toEqual(['first', 'second'])
})

test('a call that is over is not given up', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const listener = vi.fn()
  deadline.onGiveUp(listener)
  deadline.clear()
  deadline.giveUp(new Error('late'))
  deadline.onGiveUp(listener)
  expect(deadline.reason).toBeUndefined()
  expect(listener).not.toHaveBeenCalled()
})

test('an answer that arrives while the process stands still is in time', outOfThree, async () => {
  using deadline = new Deadline(10)
  await setImmediate() // next come the timers, and then the answers
  const answer = deadline.race(stat(import.meta.filename).then(() => 'answered'))
  const end = performance.now() + 200
  while (performance.now() < end);
  expect(await answer).toBe('answered')
})
