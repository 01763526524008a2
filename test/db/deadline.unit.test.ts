/** The listeners of a deadline, and answers that arrive in time. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
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

test('an answer that arrives while the process stands still is in time', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port) // it listens on a port
  const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'connect')])
  using deadline = new Deadline(10)
  const answer = deadline.race(once(client, 'data').then(([data]) => String(data)))
  socket.end('answered')
  const end = performance.now() + 200
  while (performance.now() < end);
  expect(await answer).toBe('answered')
})
