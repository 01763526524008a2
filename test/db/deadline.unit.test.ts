/** The waiters of a deadline, and answers that arrive in time. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline, jointDeadline } from '../../db/deadline.ts'

test('each waiter is given up once, unless it was removed or the call is over', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const waiterOf = (name: string) => ({
    giveUp: ({ message }: Error) => void called.push(`${name}: ${message}`),
  })
  const first = waiterOf('first')
  deadline.add(first)
  const second = {
    giveUp() {
      deadline.remove(second)
      called.push('second')
    },
  }
  deadline.add(second)
  const third = waiterOf('third')
  deadline.add(third)
  deadline.add(third)
  deadline.remove(first)
  deadline.remove(first)
  deadline.giveUp(new Error('over'))
  deadline.giveUp(new Error('again'))
  deadline.add(waiterOf('late'))
  expect(called).toEqual(['second', 'third: over', 'late: over'])
  expect(deadline.reason?.message).toBe('over')

  const answered = new Deadline(Number.POSITIVE_INFINITY)
  answered.add(waiterOf('answered'))
  answered.clear()
  answered.giveUp(new Error('too late'))
  expect(answered.reason).toBeUndefined()
  expect(called).toHaveLength(3)
})

test('the deadline of several calls ends with the last of theirs', () => {
  const own = [1, 2].map(() => new Deadline(Number.POSITIVE_INFINITY)) as [Deadline, Deadline]
  const joint = jointDeadline(new Set(own))
  own[0].giveUp(new Error('first'))
  expect(joint.reason).toBeUndefined()
  own[1].giveUp(new Error('last'))
  expect(joint.reason?.message).toBe('last')
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
