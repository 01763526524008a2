/**
 * The middlewares of a procedure (https://trpc.io/docs/server/middlewares), in the order of tRPC's own calls: each
 * begins what follows by `next()`, every input is checked in its place, and the resolver is the last.
 */
import type { z } from 'zod'
import type { Deadline } from '../../db/index.ts'
import { Problem, problem, problemOfInput } from '../errors/problem.ts'
import {
  type Context,
  failure,
  type Made,
  type Middleware,
  type More,
  type Next,
  Options,
  type Result,
  resultOf,
  type State,
  type Success,
  success,
} from './middleware.ts'

/** A middleware, or the schema of an input. */
export type Step = Middleware | z.ZodType

/** What a call of a procedure is made with. */
interface Start {
  /** The fields of `ctx` that are of the service: no middleware may replace one. */
  own: object
  ctx: object
  deadline: Deadline
  batchIndex: number
  getRawInput: () => Promise<unknown>
  /** Calls the resolver. */
  resolve(ctx: Context, input: unknown): Promise<Made>
  /** Logs an error that the answer does not tell. */
  report(error: Problem): void
}

/** The steps of a procedure that has middlewares. */
export class Chain {
  readonly name: string
  readonly type: 'query' | 'mutation'
  readonly meta: unknown
  readonly steps: Step[]

  constructor(name: string, type: 'query' | 'mutation', meta: unknown, steps: Step[]) {
    this.name = name
    this.type = type
    this.meta = meta
    this.steps = steps
  }

  /**
   * Runs the middlewares and the resolver. Returns what the middlewares made of its output, which is as the
   * resolver made it unless they replaced `data`. Throws the errors of all of them, and SERVICE_UNAVAILABLE at the
   * deadline.
   */
  async run(start: Start): Promise<Success> {
    const result = await new Run(this, start).untilDeadline()
    if (!result.ok) throw result.error
    return result
  }
}

/** One call of a procedure. */
class Run {
  readonly #chain: Chain
  readonly #start: Start
  /** The result of the resolver. */
  #resolved: Success | undefined

  constructor(chain: Chain, start: Start) {
    this.#chain = chain
    this.#start = start
  }

  /** Returns the result of the chain, or if it has not ended at the deadline, what is known by then. */
  untilDeadline(): Promise<Result> {
    const { ctx, getRawInput, deadline } = this.#start
    const { promise, resolve } = Promise.withResolvers<Result>()
    let hasEnded = false
    const giveUp = () => {
      // What waits for the database ends now, too, and its error says more.
      setTimeout(() => hasEnded || resolve(this.#resultAtDeadline()))
    }
    const waiter = { giveUp }
    deadline.add(waiter)
    const state = { ctx: ctx as Context, input: undefined, getRawInput }
    void this.#from(0, state).then((result) => {
      hasEnded = true
      deadline.remove(waiter)
      resolve(result)
    })
    return promise
  }

  #resultAtDeadline(): Result {
    const { deadline, report } = this.#start
    const { name, type } = this.#chain
    const cause = new Error(`A middleware or the resolver of ${name} exceeds the deadline`)
    // The effect of a mutation stays, so its output is the answer.
    if (type === 'mutation' && this.#resolved) {
      report(new Problem('INTERNAL_SERVER_ERROR', AFTER_EFFECT, { cause }))
      return this.#resolved
    }
    const { reason } = deadline
    return failure(reason instanceof Problem ? reason : problem('late', cause))
  }

  /** Runs the steps from this one on. Never throws. */
  async #from(first: number, before: State): Promise<Result> {
    try {
      let [at, state] = [first, before]
      const { deadline, resolve } = this.#start
      const { steps, type } = this.#chain
      if (deadline.reason) throw deadline.signal.reason // the call is answered: it must have no effect any more
      let step = steps[at]
      for (; typeof step === 'object'; step = steps[++at]) state = await withInput(state, step)
      if (step) {
        return type === 'query'
          ? await this.#call(step, state, this.#nextOf(at, state))
          : await this.#callOnce(step, state, this.#nextOf(at, state))
      }
      const result = success(await resolve(state.ctx, state.input))
      this.#resolved = result
      // The effect of a mutation stays, so no middleware may write another output into its result.
      return type === 'mutation' ? Object.freeze(result) : result
    } catch (thrown) {
      return failure(thrown)
    }
  }

  /** Returns `next` of the middleware at this place. It never throws. */
  #nextOf(at: number, state: State): Next {
    return (more) => {
      try {
        return this.#from(at + 1, more ? this.#extended(state, more) : state)
      } catch (thrown) {
        return Promise.resolve(failure(thrown))
      }
    }
  }

  /** Calls a middleware of a query. Throws its errors, and TypeError if it returns no result. */
  async #call(middleware: Middleware, state: State, next: Next): Promise<Result> {
    const result = resultOf(await middleware(new Options(this.#chain, this.#start, state, next)))
    if (!result) throw this.#forgotten()
    return result
  }

  /**
   * Calls a middleware of a mutation. What follows runs once, however often the middleware calls `next()`, and after
   * a success its output is the answer: the effect stays, so no error and no other output may take its place.
   */
  async #callOnce(middleware: Middleware, state: State, next: Next): Promise<Result> {
    let given: Promise<Result> | undefined
    let hasEnded = false
    const nextOnce: Next = (more) => {
      given ??= hasEnded
        ? Promise.resolve(failure(this.#wrong('calls next() too late')))
        : next(more)
      return given
    }
    let result: Result | undefined
    try {
      result = resultOf(await middleware(new Options(this.#chain, this.#start, state, nextOnce)))
    } catch (thrown) {
      result = failure(thrown)
    }
    hasEnded = true
    if (!given) {
      if (result?.ok === false) return result
      throw result ? this.#wrong('returns a result without next()') : this.#forgotten()
    }
    const own = await given
    const fits = own.ok ? result?.ok && result.data === own.data : result?.ok === false
    if (fits && result) return own.ok ? own : result
    const cause = !result
      ? this.#forgotten()
      : result.ok
        ? this.#wrong('replaces the result of next()')
        : (result.error.cause ?? result.error)
    this.#start.report(new Problem('INTERNAL_SERVER_ERROR', AFTER_EFFECT, { cause }))
    return own
  }

  #forgotten(): TypeError {
    return new TypeError(`A middleware of ${this.#chain.name} must return the result of next()`)
  }

  #wrong(what: string): TypeError {
    return new TypeError(`A middleware of ${this.#chain.name}, a mutation, ${what}`)
  }

  /** Returns the state with what a middleware passes on. Throws TypeError for another value of a field of the service. */
  #extended(state: State, { ctx: more, ...rest }: More): State {
    const { own } = this.#start
    for (const field in more) {
      if (!Object.hasOwn(own, field) || more[field] === state.ctx[field]) continue
      const { name } = this.#chain
      throw new TypeError(`A middleware of ${name} replaces ctx.${field}, which must stay as it is`)
    }
    const { getRawInput = state.getRawInput } = rest
    const input = 'input' in rest ? rest.input : state.input
    return { ctx: more ? Object.assign({ ...state.ctx }, more) : state.ctx, input, getRawInput }
  }
}

const AFTER_EFFECT = 'A middleware failed after next(): the answer is the result of next()'

/** Returns the state with a further input, which is checked now. Throws BAD_REQUEST. */
async function withInput(state: State, schema: z.ZodType): Promise<State> {
  const { success, data, error } = schema.safeParse(await state.getRawInput())
  if (!success) throw problemOfInput(error)
  const ctx = { ...state.ctx, input: merged(state.ctx.input, data) }
  return { ...state, ctx, input: merged(state.input, data) }
}

/** Several inputs are one object, as in tRPC. */
const merged = (before: unknown, data: unknown) =>
  isObject(before) && isObject(data) ? { ...before, ...data } : data

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
