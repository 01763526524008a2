/** The listeners of a deadline, and answers that arrive in time. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../db/deadline.ts'

test('each listener is called once, unless it was removed or the call is over', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const listen = (name: string) =>
    deadline.onGiveUp(({ message }) => called.push(`${name}: ${message}`))
  const removeFirst = listen('first')
  const removeSecond = deadline.onGiveUp(() => {
    removeSecond()
    called.push('second')
  })
  listen('third')
  removeFirst()
  removeFirst()
  deadline.giveUp(new Error('over'))
  deadline.giveUp(new Error('again'))
  listen('late')
  expect(called).toEqual(['second', 'third: over', 'late: over'])
  expect(deadline.reason?.message).toBe('over')

  const answered = new Deadline(Number.POSITIVE_INFINITY)
  answered.onGiveUp(() => called.push('answered'))
  answered.clear()
  answered.giveUp(new Error('too late'))
  expect(answered.reason).toBeUndefined()
  expect(called).toHaveLength(3)
})

test('a call that is over leaves no timer', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  new Deadline(30_000).clear()
  expect(vi.getTimerCount()).toBe(0)
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
