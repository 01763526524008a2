/** A semaphore: a caller that aborts its wait takes no permit. */
import { expect, test } from 'vitest'
import { Deadline } from '../../../../db/deadline.ts'
import { createSemaphore } from '../../../../db/engines/mysql/semaphore.ts'
import { OverloadedError } from '../../../../db/errors.ts'

test('callers get permits in the order of their arrival, except aborted ones', async () => {
  const take = createSemaphore(1, 3)
  const open = new Deadline(Number.POSITIVE_INFINITY)
  const release = await take(open)
  const deadlines = Array.from({ length: 2 }, () => new Deadline(Number.POSITIVE_INFINITY))
  const order: string[] = []
  const waiting = [
    ...deadlines.map((deadline) => take(deadline)),
    take(open).then((release) => {
      order.push('third')
      return release
    }),
  ]
  await expect(take(open)).rejects.toThrow(OverloadedError)
  for (const deadline of deadlines) deadline.giveUp(new Error('The client has gone'))
  for (const gone of waiting.slice(0, 2)) await expect(gone).rejects.toThrow('The client has gone')
  const fourth = take(open).then((release) => {
    order.push('fourth')
    return release
  })
  release()
  const releaseThird = await waiting[2]
  expect(order).toEqual(['third'])
  releaseThird?.()
  const releaseFourth = await fourth
  releaseFourth()
  await take(open)
  expect(order).toEqual(['third', 'fourth'])
  // Those that waited have left no permit behind.
  const gone = new Deadline(Number.POSITIVE_INFINITY)
  const fifth = take(gone)
  gone.giveUp(new Error('The client has gone'))
  await expect(fifth).rejects.toThrow('The client has gone')
})
