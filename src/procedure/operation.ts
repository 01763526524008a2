/** The operation: a procedure as both surfaces call it. */
import { z } from 'zod'
import { problem, problemOfInput } from '../errors/problem.ts'
import { transformer } from '../wire/encoding.ts'
import type { Call, CalledOperation, CallsOfRequest } from './call.ts'
import type { AccessMeta, RestMeta } from './meta.ts'
import type { Page } from './paging.ts'

export type Resolver = (options: ResolverOptions) => Promise<unknown>

/** What an operation is made of, beside its resolver. */
export type Parts = Omit<Operation, 'run' | 'checkOutput'>

/**
 * A procedure without middlewares, whose call runs nothing of theirs; one that has some is a ChainedOperation. tRPC's own
 * call costs 20 µs, because it copies its options five times, and this one 1 µs.
 */
export class Operation implements CalledOperation {
  readonly name: string
  readonly type: 'query' | 'mutation'
  readonly rest: RestMeta | undefined
  readonly access: AccessMeta
  readonly input: z.ZodType
  /** The schema of the output; in a list, of the items of a page. REST needs it. */
  readonly output: z.ZodType | undefined
  /** Whether the resolver returns a page. */
  readonly isPaged: boolean
  readonly #resolver: Resolver

  constructor(parts: Parts, resolver: Resolver) {
    this.name = parts.name
    this.type = parts.type
    this.rest = parts.rest
    this.access = parts.access
    this.input = parts.input
    this.output = parts.output
    this.isPaged = parts.isPaged
    this.#resolver = resolver
  }

  /**
   * Checks the input, calls the resolver, and returns its checked output; of a list, a page. `readInput` returns the input
   * as it was read, unchecked, or throws: each schema of a procedure with middlewares calls it. `batchIndex` is that of
   * the call in its batch. Throws, or rejects with, BAD_REQUEST for an input that its schema rejects, and the errors of `readInput`,
   * the middlewares and the resolver.
   */
  // Not async: V8 would keep the unchecked input, whose unknown fields may be large, while the call waits.
  run(request: CallsOfRequest, readInput: () => unknown, batchIndex = 0): Promise<unknown> {
    const input = checkInput(this.input, readInput(), this.name)
    return this.resolve(this.callOf(request, input), input, batchIndex)
  }

  protected callOf(request: CallsOfRequest, input: unknown): Call {
    const progress = { input, written: undefined }
    return { ...request, operation: this, stores: request.shared.stores, progress }
  }

  /** Calls the resolver with a checked input, and returns its checked output. */
  protected async resolve(call: Call, input: unknown, batchIndex: number): Promise<unknown> {
    const output = await this.#resolver(new ResolverOptions(call, input, batchIndex))
    if (this.isPaged) return this.checkPage(output as Page)
    if (this.type === 'query') return this.checkOutput(output)
    // A function of write.ts has checked the output of a mutation, which may be that of an earlier release, kept with an
    // Idempotency-Key.
    const { written } = call.progress
    if (written && written.output === output) return output
    const functions = 'write(…), writeIdempotent(…), create(…) or writeElsewhere(…)'
    throw new TypeError(`The resolver of ${this.name} must return the output of ${functions}`)
  }

  checkOutput(output: unknown): unknown {
    const checked = this.output ? this.#parse(this.output, output) : output
    if (!this.rest) this.#encode(checked)
    return checked
  }

  #parse(schema: z.ZodType, output: unknown): unknown {
    const { success, data, error } = check(schema, output, this.name)
    if (success) return data
    const message = `The output of ${this.name} does not fit its schema`
    throw problem('internal', new Error(message, { cause: error }))
  }

  #encode(output: unknown): void {
    try {
      transformer.serialize(output)
    } catch (cause) {
      const message = `The output of ${this.name} has no encoding in tRPC`
      throw problem('internal', new Error(message, { cause }))
    }
  }

  protected checkPage({ items, next }: Page): Page {
    return { items: this.checkOutput(items) as unknown[], next }
  }
}

/** What a resolver receives (https://trpc.io/docs/server/procedures). */
export class ResolverOptions {
  readonly ctx: Call
  readonly input: unknown
  /** The name of the procedure. */
  readonly path: string
  /** The index of the call in its batch. */
  readonly batchIndex: number

  constructor(ctx: Call, input: unknown, batchIndex: number) {
    this.ctx = ctx
    this.input = input
    this.path = ctx.operation.name
    this.batchIndex = batchIndex
  }

  /** Aborts at the deadline. It is made when it is first asked for. */
  get signal(): AbortSignal {
    return this.ctx.deadline.signal
  }
}

/** Returns a checked input of the procedure with this name. Throws BAD_REQUEST for one that its schema rejects. */
export function checkInput(schema: z.ZodType, input: unknown, name: string): unknown {
  const { success, data, error } = check(schema, input, name)
  if (!success) throw problemOfInput(error)
  return data
}

/** Checks a value of the procedure with this name, as `safeParse` does. Throws TypeError for a check that waits. */
export function check(schema: z.ZodType, value: unknown, name: string) {
  try {
    return schema.safeParse(value)
  } catch (cause) {
    throw cause instanceof z.core.$ZodAsyncError ? waiting(name, cause) : cause
  }
}

function waiting(name: string, cause: unknown): TypeError {
  const what = 'has a check that waits, such as refine(async …)'
  const message = `The procedure ${name} ${what}: check in the resolver, and throw BAD_REQUEST`
  return new TypeError(message, { cause })
}
