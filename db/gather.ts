/** Calls that meet share a trip to the server: while one is under way, those that arrive wait for the next. */
import { isSqlite } from './columns.ts'
import { Deadline } from './deadline.ts'
import { OverloadedError } from './errors.ts'
import type { Database } from './tables.ts'
import { join } from './trace.ts'

/** Milliseconds after which those who wait go on over another connection: the one before may hang. */
const PATIENCE = 50

/** Callers that may be there at once: a thousand who wait, beside those whose trip is under way. */
const MAX_CALLERS = 1_010

export interface Gathering<Question, Answer> {
  /** Answers questions in their order, in one trip; fewer wait for it the longer they are. */
  ask(questions: Question[], deadline: Deadline): Promise<Answer[]>
  /** Questions of the same lane may share a trip; those of different lanes do not wait for each other. */
  lane(question: Question): string
  /** How many one trip takes. */
  most: number
}

interface Caller<Question, Answer> {
  question: Question
  deadline: Deadline
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** The trip that is under way, and who waits for the next. */
interface Lane<Question, Answer> {
  waiting: Caller<Question, Answer>[]
  current: symbol | undefined
  timer: NodeJS.Timeout | undefined
}

/**
 * A function that asks one question of many callers. Nobody joins a trip that has begun, so that
 * each sees what was acknowledged before it came. Who is given up by its deadline takes nobody
 * along; the trip is given up when nobody waits for it any more. The embedded engine answers at
 * once: nothing is gathered there.
 */
export function gather<Question, Answer>(
  db: Database,
  { ask, lane: laneOf, most }: Gathering<Question, Answer>,
): (question: Question, deadline: Deadline) => Promise<Answer> {
  if (isSqlite(db)) {
    // One answer to one question.
    return async (question, deadline) => (await ask([question], deadline))[0] as Answer
  }
  const lanes = new Map<string, Lane<Question, Answer>>()
  let callers = 0

  function depart(name: string, lane: Lane<Question, Answer>): void {
    clearTimeout(lane.timer)
    lane.timer = undefined
    const isWanted = ({ deadline, reject }: Caller<Question, Answer>) => {
      if (deadline.reason) reject(deadline.reason)
      return !deadline.reason
    }
    const group = lane.waiting.splice(0, most).filter(isWanted)
    const trip = Symbol()
    lane.current = trip
    void travel(group).then(() => {
      if (lane.current === trip) next(name, lane)
    })
    if (lane.waiting.length > 0) lane.timer = setTimeout(next, PATIENCE, name, lane)
  }

  function next(name: string, lane: Lane<Question, Answer>): void {
    if (lane.waiting.length > 0) depart(name, lane)
    else {
      lane.current = undefined
      lanes.delete(name)
    }
  }

  async function travel(group: Caller<Question, Answer>[]): Promise<void> {
    if (group.length === 0) return
    const deadline = jointDeadline(group)
    try {
      const answers = await ask(
        group.map(({ question }) => question),
        deadline,
      )
      // As many answers as questions.
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  return async (question, deadline) => {
    if (deadline.reason) throw deadline.reason
    if (callers >= MAX_CALLERS) throw new OverloadedError('Too many wait for the database')
    callers++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const forget = deadline.onGiveUp(reject)
    try {
      const name = laneOf(question)
      let lane = lanes.get(name)
      if (!lane) {
        lane = { waiting: [], current: undefined, timer: undefined }
        lanes.set(name, lane)
      }
      lane.waiting.push({ question, deadline, resolve, reject })
      if (!lane.current) depart(name, lane)
      else lane.timer ??= setTimeout(next, PATIENCE, name, lane)
      return await promise
    } finally {
      forget()
      callers--
    }
  }
}

/**
 * Ends when the deadlines of all callers have ended, and has a trace that joins theirs; of one caller
 * it is the caller's own.
 */
function jointDeadline(group: { deadline: Deadline }[]): Deadline {
  const [first] = group
  if (first && group.length === 1) return first.deadline
  const trace = first?.deadline.trace && join(group.map(({ deadline }) => deadline.trace))
  const joint = new Deadline(Number.POSITIVE_INFINITY, trace)
  let waiting = group.length
  for (const { deadline } of group) {
    deadline.onGiveUp((reason) => {
      if (--waiting === 0) joint.giveUp(reason)
    })
  }
  return joint
}
