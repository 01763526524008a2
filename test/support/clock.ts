/** A process whose clock is wrong: the wall clock alone, as where a machine has no NTP. */
import { runFirst } from './watched.ts'

/** The variables of a process whose clock is ahead by these milliseconds, or behind if they are negative. */
export const clockAhead = (milliseconds: number): Record<string, string> =>
  runFirst(`
    const { now } = Date
    globalThis.Date = class extends Date {
      static now() { return now() + ${milliseconds} }
      constructor(...given) { given.length > 0 ? super(...given) : super(now() + ${milliseconds}) }
    }`)
