/** A row that does not exist is 404; every other value is a row. */
import { expect, test } from 'vitest'
import { found } from '../../src/procedure/found.ts'

test.each([[0n], [0], [''], [false], [null]])('found returns %s', (value) => {
  expect(found(value, 'There is none')).toBe(value)
})

test('found throws NOT_FOUND with its message for undefined', () => {
  expect(() => found(undefined, 'There is none')).toThrow(
    expect.objectContaining({ code: 'NOT_FOUND', message: 'There is none' }),
  )
})
