/** A limited number of places: one that is given up while it is waited for is not lost. */
import { expect, test } from 'vitest'
import { Deadline } from '../../../db/deadline.ts'
import { places } from '../../../db/engines/places.ts'
import { OverloadedError } from '../../../db/errors.ts'

test('callers get places in the order in which they came, except those who gave up', async () => {
  const { take } = places(1, 3)
  const leave = await take(undefined)
  const deadlines = Array.from({ length: 2 }, () => new Deadline(Number.POSITIVE_INFINITY))
  const order: string[] = []
  const waiting = [
    ...deadlines.map((deadline) => take(deadline)),
    take(undefined).then((leave) => {
      order.push('third')
      return leave
    }),
  ]
  await expect(take(undefined)).rejects.toThrow(OverloadedError)
  for (const deadline of deadlines) deadline.giveUp(new Error('The client has gone'))
  for (const gone of waiting.slice(0, 2)) await expect(gone).rejects.toThrow('The client has gone')
  const fourth = take(undefined).then((leave) => {
    order.push('fourth')
    return leave
  })
  leave()
  const leaveThird = await waiting[2]
  expect(order).toEqual(['third'])
  leaveThird?.()
  const leaveFourth = await fourth
  leaveFourth()
  await take(undefined)
  expect(order).toEqual(['third', 'fourth'])
})
