/** The calls of a tRPC request: one, or those of a batch. */
import { MAX_BATCH } from '../../../client/src/encoding.ts'
import { toProblem } from '../../errors/catalogue.ts'
import { Problem } from '../../errors/problem.ts'
import type { CallOutcome } from '../../http/request-log.ts'
import { inSpan } from '../../observe/span.ts'
import type { Context } from '../../procedure/context.ts'
import type { Report } from '../pipeline.ts'

/** Throws BAD_REQUEST for a batch that is too long, mixes queries and mutations, or has an Idempotency-Key. */
export function checkBatch(names: string[], types: Set<string>, idempotencyKey: unknown): void {
  const badRequest = (message: string) => new Problem('BAD_REQUEST', message)
  if (names.length > MAX_BATCH) throw badRequest(`A batch must have at most ${MAX_BATCH} calls`)
  if (types.size > 1) throw badRequest('A batch must be of queries or of mutations, not of both')
  if (idempotencyKey !== undefined) {
    throw badRequest('The header Idempotency-Key goes with one call, not with a batch')
  }
}

/** Returns the input of a call by its index in the batch. Throws a Problem for an invalid input. */
export type Inputs = (index: number) => unknown

/** A call of a procedure. */
export interface Call {
  /** The logged operation. */
  name: string
  /** Returns the output. Throws the error of the call, and that of its input. */
  run(context: Context, inputs: Inputs, index: number): Promise<unknown>
}

/** The output of a call in a batch, or its error. */
export interface Outcome {
  output?: unknown
  error?: Problem
  status: number
}

/** Runs the calls of a batch concurrently, and returns their outcomes in order, and those for the log. */
export async function runBatch(
  calls: Call[],
  context: Context,
  inputs: Inputs,
  report: Report,
): Promise<{ outcomes: Outcome[]; logged: CallOutcome[] | undefined }> {
  const runOne = async (call: Call, index: number): Promise<Outcome> => {
    try {
      return { output: await call.run(context, inputs, index), status: 200 }
    } catch (thrown) {
      const error = toProblem(thrown)
      report(error)
      return { error, status: error.status }
    }
  }
  const [first] = calls
  if (first && calls.length === 1) return { outcomes: [await runOne(first, 0)], logged: undefined }
  const outcomes = await Promise.all(
    calls.map((call, index) => inSpan(call.name, () => runOne(call, index))),
  )
  return {
    outcomes,
    logged: calls.map(({ name }, index) => [name, outcomes[index]?.status ?? 500]),
  }
}
