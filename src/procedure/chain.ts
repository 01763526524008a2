/**
 * Procedures with middlewares (https://trpc.io/docs/server/middlewares), which run in the order of tRPC's own calls: each
 * begins what follows by `next()`, every input is checked in its place, and the resolver is the last. Once the resolver
 * of a mutation has succeeded, its output is the answer: `kept` logs what a middleware makes of it, or the deadline.
 */
import type { z } from 'zod'
import { Problem, problem } from '../errors/problem.ts'
import { type CallsOfRequest, OWN } from './call.ts'
import {
  failure,
  type Middleware,
  MiddlewareOptions,
  type More,
  type Result,
  resultOf,
  type State,
  type Success,
  success,
} from './middleware.ts'
import { checkInput, Operation, type Parts, type Resolver } from './operation.ts'
import type { Page } from './paging.ts'

/** A middleware, or the schema of an input. */
export type Step = Middleware | z.ZodType

/** A procedure that has middlewares. One without them costs none of this. */
export class ChainedOperation extends Operation {
  readonly #meta: unknown
  readonly #steps: Step[]

  constructor(parts: Parts, resolver: Resolver, meta: unknown, steps: Step[]) {
    super(parts, resolver)
    this.#meta = meta
    const isMutation = this.type === 'mutation'
    this.#steps = steps.map((step) =>
      isMutation && typeof step === 'function' ? keepingEffect(step) : step,
    )
  }

  /** Does the same with the middlewares. Throws SERVICE_UNAVAILABLE at the deadline, too. */
  override async run(
    request: CallsOfRequest,
    readInput: () => unknown,
    batchIndex = 0,
  ): Promise<unknown> {
    const { name, type } = this
    const options = { meta: this.#meta, batchIndex }
    const ctx = this.callOf(request, undefined) as State['ctx']
    const { deadline } = ctx
    let succeeded: Success | undefined

    /** Runs the steps from this one on. Never throws. */
    const runFrom = async (at: number, before: State, more?: More): Promise<Result> => {
      try {
        if (deadline.reason) throw deadline.signal.reason // the call is answered: it must have no effect any more
        const state = more ? extended(before, more) : before
        const step = this.#steps[at]
        if (typeof step === 'function') {
          const next = (added?: More) => runFrom(at + 1, state, added)
          return resultOf(await step(new MiddlewareOptions(state, options, next)), name)
        }
        if (step) return await runFrom(at + 1, await withInput(state, step))
        const output = await this.resolve(state.ctx, state.input, batchIndex)
        succeeded = success({ data: this.isPaged ? (output as Page).items : output, output })
        return succeeded
      } catch (thrown) {
        return failure(thrown)
      }
    }

    const running = runFrom(0, { ctx, input: undefined, getRawInput: async () => readInput() })
    const result = await deadline.race(running).catch(async (reason): Promise<Result> => {
      // What waits for the database ends now, too, and its error says more.
      const ended = await Promise.race([running, nextTurn()])
      if (ended) return ended
      const late = new Error(`A middleware or the resolver of ${name} exceeds the deadline`)
      if (type === 'mutation' && succeeded) return kept(ctx, succeeded, late)
      return failure(reason instanceof Problem ? reason : problem('late', late))
    })
    if (!result.ok) throw result.error
    const { data, resolved } = result
    if (resolved && resolved.data === data) return resolved.output
    // A middleware of a query has replaced the output.
    if (!this.isPaged) return this.checkOutput(data)
    return this.checkPage({
      items: data as unknown[],
      next: (resolved?.output as Page | undefined)?.next,
    })
  }
}

const nextTurn = () => new Promise<void>((resolve) => setTimeout(resolve))

/** Returns the state with what a middleware passes on. Throws TypeError for another value of a field of the service. */
function extended({ ctx, ...state }: State, { ctx: more, ...others }: More): State {
  for (const field in more) {
    if (!Object.hasOwn(OWN, field) || more[field] === ctx[field]) continue
    const { name } = ctx.operation
    throw new TypeError(`A middleware of ${name} replaces ctx.${field}, which must stay as it is`)
  }
  return { ...state, ...others, ctx: { ...ctx, ...more } }
}

/** Returns the state with a further input, which is checked now. Throws BAD_REQUEST. */
async function withInput(state: State, schema: z.ZodType): Promise<State> {
  const { progress, operation } = state.ctx
  const data = checkInput(schema, await state.getRawInput(), operation.name)
  progress.input = merged(progress.input, data)
  return { ...state, input: merged(state.input, data) }
}

/** Several inputs are one object, as in tRPC. */
const merged = (before: unknown, data: unknown) =>
  isObject(before) && isObject(data) ? { ...before, ...data } : data

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a middleware of a mutation. What follows it runs once, however often it calls `next()`, and its success stays. */
function keepingEffect(middleware: Middleware): Middleware {
  return async (options) => {
    const { ctx, next } = options
    const { name } = ctx.operation
    const wrong = (what: string) => new TypeError(`A middleware of ${name}, a mutation, ${what}`)
    let given: Promise<Result> | undefined
    let hasEnded = false
    options.next = async (more) => {
      if (given) reportIgnored(ctx, wrong('calls next() twice'))
      given ??= hasEnded ? Promise.resolve(failure(wrong('calls next() too late'))) : next(more)
      return { ...(await given) } // a copy, into which the middleware may write
    }
    let result: Result
    try {
      result = resultOf(await middleware(options), name)
    } catch (thrown) {
      result = failure(thrown)
    }
    hasEnded = true
    const own = await given
    if (!own) return result.ok ? failure(wrong('returns a result without next()')) : result
    if (!own.ok && !result.ok) return result
    if (own.ok && result.ok && own.data === result.data) return own
    return kept(ctx, own, result.ok ? wrong('replaces the result of next()') : result.thrown)
  }
}

/** Returns the result of next(), and logs what has come after it. */
function kept<Kept extends Result>(ctx: State['ctx'], result: Kept, after: unknown): Kept {
  reportIgnored(ctx, after)
  return result
}

/** Logs what a middleware of a mutation does, and the answer does not tell. */
const reportIgnored = ({ report, operation }: State['ctx'], cause: unknown) =>
  report(new Problem('INTERNAL_SERVER_ERROR', IGNORED, { cause }), operation.name)

const IGNORED = 'The answer is the result of next(), whatever its middleware does then'
