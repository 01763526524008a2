/** A row that does not exist is 404, and one that exists already is 409; every other error stays. */
import { expect, test } from 'vitest'
import { DatabaseUnavailableError, DuplicateError } from '../../db/errors.ts'
import { found } from '../../src/procedure/resolver.ts'
import { unique } from '../../src/procedure/write.ts'

test.each([[0n], [0], [''], [false], [null]])('found returns %s', (value) => {
  expect(found(value, 'There is none')).toBe(value)
})

test('found throws NOT_FOUND with its message for undefined', () => {
  expect(() => found(undefined, 'There is none')).toThrow(
    expect.objectContaining({ code: 'NOT_FOUND', message: 'There is none' }),
  )
})

test('unique throws CONFLICT with its message for a value that is taken, and any other error as it is', async () => {
  const conflict = { code: 'CONFLICT', message: 'There is one already' }
  const failing = (error: Error) => unique(Promise.reject(error), conflict.message)
  await expect(failing(new DuplicateError('taken'))).rejects.toMatchObject(conflict)
  for (const other of [new Error('A bug'), new DatabaseUnavailableError(undefined, true)]) {
    await expect(failing(other)).rejects.toBe(other)
  }
  expect(await unique(Promise.resolve(undefined), conflict.message)).toBeUndefined()
})
