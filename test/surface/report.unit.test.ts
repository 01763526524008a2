/** Errors in the log: a line for each failure, and a line a second for all calls that fail for one cause. */
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DatabaseTimeoutError, DatabaseUnavailableError, OverloadedError } from '../../db/errors.ts'
import { problem } from '../../src/errors/problem.ts'
import { RequestRecord } from '../../src/http/record.ts'
import { reporter } from '../../src/surface/report.ts'

function watched() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const lines: string[] = []
  const report = reporter(pino({}, { write: (line: string) => void lines.push(line) }), () => {})
  const entries = () => lines.splice(0).map((line) => JSON.parse(line))
  return { report, entries, record: new RequestRecord('id') }
}

test.for([
  ['an overload', new OverloadedError('Too many wait'), { msg: 'Too many wait' }],
  [
    'a deadline',
    new DatabaseTimeoutError(5),
    { msg: /cannot use its database/, err: /within 5 ms/ },
  ],
  ['a lost database', new DatabaseUnavailableError(new Error('refused'), true), { err: /refused/ }],
] as const)(
  '%s has a line at once, and then one a second with the number of calls',
  ([, cause, shown]) => {
    const { report, entries, record } = watched()
    const expected = Object.entries(shown).map(([name, text]) => [
      name,
      expect.stringMatching(text),
    ])
    const fail = (calls: number, operation = 'getPet') => {
      for (let call = 0; call < calls; call++)
        report(problem('unavailable', cause), record, operation)
    }
    const numbers = () => entries().map(({ operation, calls }) => [operation, calls])
    fail(3_000)
    const [first, ...others] = entries()
    expect(others).toEqual([])
    const { err, ...rest } = first
    expect({ ...rest, err: err?.stack }).toMatchObject({
      ...{ level: 50, requestId: 'id', operation: 'getPet', calls: 1 },
      ...Object.fromEntries(expected),
    })
    vi.advanceTimersByTime(999)
    fail(1, 'listPets')
    expect(numbers()).toEqual([['listPets', 1]])
    vi.advanceTimersByTime(1)
    expect(numbers()).toEqual([['getPet', 2_999]])
    fail(7)
    vi.advanceTimersByTime(1_000)
    expect(numbers()).toEqual([['getPet', 7]])
    vi.advanceTimersByTime(5_000)
    expect(vi.getTimerCount(), 'nothing is left').toBe(0)
    fail(2)
    expect(numbers(), 'after a quiet second').toEqual([['getPet', 1]])
  },
)

test('any other failure has a line each, and no client has one', () => {
  const { report, entries, record } = watched()
  for (let call = 0; call < 2; call++) report(problem('internal', new Error('A bug')), record)
  report(problem('unavailable', new Error('Gone')), record)
  report(problem('nothingHere'), record)
  const bug = {
    level: 50,
    requestId: 'id',
    err: { message: 'A bug' },
    msg: 'Internal server error',
  }
  expect(entries()).toMatchObject([bug, bug, { level: 50, err: { message: 'Gone' } }])
})
