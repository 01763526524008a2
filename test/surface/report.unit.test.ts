/** Errors in the log: one line per failure, and one line per second for an overload. */
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { OverloadedError } from '../../db/errors.ts'
import { problem } from '../../src/errors/problem.ts'
import { RequestRecord } from '../../src/http/record.ts'
import { reporter } from '../../src/surface/pipeline.ts'

test('an overload is logged once for 100 rejected calls, and again after a second', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const lines: string[] = []
  const report = reporter(pino({}, { write: (line: string) => void lines.push(line) }), () => {})
  const record = new RequestRecord('id')
  const overload = problem('unavailable', new OverloadedError('Too many wait'))
  for (let call = 0; call < 100; call++) report(overload, record)
  report(problem('internal', new Error('A bug')), record)
  report(problem('unavailable', new Error('Gone')), record)
  report(problem('nothingHere'), record)
  vi.advanceTimersByTime(900)
  report(overload, record)
  vi.advanceTimersByTime(200)
  report(overload, record)
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 50, msg: 'Too many calls wait for the database' },
    { level: 50, requestId: 'id', err: { message: 'A bug' }, msg: 'Internal server error' },
    { level: 50, requestId: 'id', err: { message: 'Gone' } },
    { level: 50, msg: 'Too many calls wait for the database' },
  ])
})
