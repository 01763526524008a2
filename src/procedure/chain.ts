/**
 * The middlewares of a procedure (https://trpc.io/docs/server/middlewares), in the order of tRPC's own calls: each
 * begins what follows by `next()`, every input is checked in its place, and the resolver is the last.
 */
import type { z } from 'zod'
import type { Deadline } from '../../db/index.ts'
import { Problem, problem, problemOfInput, toProblem } from '../errors/problem.ts'

/** What `next()` returns, and what a middleware returns in turn. */
export type Result = Success | { ok: false; error: Problem }

interface Success {
  ok: true
  /** The checked output; of a list, its items. A middleware may replace it. */
  data: unknown
  /** The same as the resolver made it: of a list, the page. Undefined if a middleware made the result. */
  made?: Made
}

/** A checked output, and what the procedure returns for it: of a list, its items and the page. */
export interface Made {
  data: unknown
  output: unknown
}

/** What a middleware passes on by `next(…)`. */
interface More {
  ctx?: Context
  input?: unknown
  getRawInput?: () => Promise<unknown>
}

type Context = Record<string, unknown>

/** A middleware as tRPC keeps it. Nothing checks what it returns. */
export type Middleware = (options: object) => Promise<Partial<Result> | undefined>

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

/** What a step receives: each may change it for those that follow. */
interface State {
  ctx: Context
  input: unknown
  getRawInput: () => Promise<unknown>
}

/** The steps of a procedure that has middlewares. */
export class Chain {
  readonly #name: string
  readonly #type: 'query' | 'mutation'
  readonly #meta: unknown
  readonly #steps: Step[]

  constructor(name: string, type: 'query' | 'mutation', meta: unknown, steps: Step[]) {
    this.#name = name
    this.#type = type
    this.#meta = meta
    this.#steps = steps
  }

  /**
   * Runs the middlewares and the resolver. Returns what the middlewares made of its output, which is as the
   * resolver made it unless they replaced `data`. Throws the errors of all of them, and SERVICE_UNAVAILABLE at the
   * deadline.
   */
  async run(start: Start): Promise<Success> {
    const { ctx, getRawInput, deadline } = start
    const state = { ctx: ctx as Context, input: undefined, getRawInput }
    let resolved: Success | undefined
    const resolve: Start['resolve'] = async (...parameters) => {
      const made = await start.resolve(...parameters)
      resolved = success(made)
      return made
    }
    const result = await untilDeadline(this.#run({ ...start, resolve }, 0, state), deadline, () => {
      const cause = new Error(`A middleware or the resolver of ${this.#name} exceeds the deadline`)
      const { reason } = deadline
      // The effect of a mutation stays, so its output is the answer.
      if (this.#type === 'query' || !resolved)
        return failure(reason instanceof Problem ? reason : problem('late', cause))
      start.report(new Problem('INTERNAL_SERVER_ERROR', AFTER_EFFECT, { cause }))
      return resolved
    })
    if (!result.ok) throw result.error
    return result
  }

  /** Runs what begins with this step. Never throws. */
  async #run(start: Start, at: number, state: State): Promise<Result> {
    const { deadline, resolve } = start
    try {
      if (deadline.reason) throw deadline.signal.reason // the call is answered: it must have no effect any more
      const step = this.#steps[at]
      if (step === undefined) {
        const result = success(await resolve(state.ctx, state.input))
        // The effect of a mutation stays, so no middleware may write another output into its result.
        return this.#type === 'mutation' ? Object.freeze(result) : result
      }
      if (typeof step !== 'function') {
        return await this.#run(start, at + 1, await withInput(state, step))
      }
      const next = async (more?: More): Promise<Result> => {
        try {
          return await this.#run(start, at + 1, this.#extended(start, state, more))
        } catch (thrown) {
          return failure(thrown)
        }
      }
      if (this.#type === 'mutation') return await this.#callOnce(step, start, state, next)
      const result = await this.#call(step, start, state, next)
      if (!result) throw this.#forgotten()
      return result
    } catch (thrown) {
      return failure(thrown)
    }
  }

  /** Calls a middleware. Returns undefined if it returns no result. Throws its errors. */
  async #call(
    middleware: Middleware,
    { deadline, batchIndex }: Start,
    state: State,
    next: (more?: More) => Promise<Result>,
  ): Promise<Result | undefined> {
    const result = await middleware({
      ...state,
      type: this.#type,
      path: this.#name,
      meta: this.#meta,
      batchIndex,
      next,
      get signal() {
        return deadline.signal
      },
    })
    if (result?.ok === true) return result as Success
    if (result?.ok === false) return failure((result as { error: unknown }).error)
    return undefined
  }

  /**
   * Calls a middleware of a mutation. What follows runs once, however often the middleware calls `next()`, and after
   * a success its output is the answer: the effect stays, so no error and no other output may take its place.
   */
  async #callOnce(
    middleware: Middleware,
    start: Start,
    state: State,
    next: (more?: More) => Promise<Result>,
  ): Promise<Result> {
    let given: Promise<Result> | undefined
    let hasEnded = false
    const nextOnce = (more?: More) => {
      given ??= hasEnded
        ? Promise.resolve(failure(this.#wrong('calls next() too late')))
        : next(more)
      return given
    }
    const result = await this.#call(middleware, start, state, nextOnce).catch(failure)
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
    start.report(new Problem('INTERNAL_SERVER_ERROR', AFTER_EFFECT, { cause }))
    return own
  }

  #forgotten(): TypeError {
    return new TypeError(`A middleware of ${this.#name} must return the result of next()`)
  }

  #wrong(what: string): TypeError {
    return new TypeError(`A middleware of ${this.#name}, a mutation, ${what}`)
  }

  /** Returns the state with what a middleware passes on. Throws TypeError for another value of a field of the service. */
  #extended({ own }: Start, state: State, { ctx: more, ...rest }: More = {}): State {
    for (const field of Object.keys(more ?? {})) {
      if (!Object.hasOwn(own, field) || more?.[field] === state.ctx[field]) continue
      throw new TypeError(
        `A middleware of ${this.#name} replaces ctx.${field}, which must stay as it is`,
      )
    }
    const { getRawInput = state.getRawInput } = rest
    const input = 'input' in rest ? rest.input : state.input
    return { ctx: more ? { ...state.ctx, ...more } : state.ctx, input, getRawInput }
  }
}

const AFTER_EFFECT = 'A middleware failed after next(): the answer is the result of next()'

// The types of tRPC have the marker, so that a middleware returns no other object.
const marker = 'middlewareMarker'

const success = (made: Made) => ({ ok: true as const, data: made.data, made, marker })

const failure = (thrown: unknown) => ({ ok: false as const, error: toProblem(thrown), marker })

/** Resolves like the promise, which never rejects, or if it has not at the deadline, to the result of `atEnd`. */
function untilDeadline(
  running: Promise<Result>,
  deadline: Deadline,
  atEnd: () => Result,
): Promise<Result> {
  return new Promise((resolve) => {
    let hasEnded = false
    const giveUp = () => {
      // What waits for the database ends now, too, and its error says more.
      setTimeout(() => hasEnded || resolve(atEnd()))
    }
    const waiter = { giveUp }
    deadline.add(waiter)
    void running.then((result) => {
      hasEnded = true
      deadline.remove(waiter)
      resolve(result)
    })
  })
}

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
