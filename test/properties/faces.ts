/** The faces of the service: REST, the wire format of tRPC, and the client package. */
import { expect } from 'vitest'
import { createPetstoreClient, type PetstoreClient } from '../support/client.ts'
import { callWith, operations } from '../support/operations.ts'
import { asOnRest, type Outcome, ofRest, ofTrpc } from '../support/outcome.ts'
import { transformer } from '../support/router.ts'
import type { Service } from '../support/service.ts'
import type { Given } from './inputs.ts'

/** Returns a function for each face, which makes one call. */
export function facesOf(service: Service) {
  const petstore = clientOf(service)
  return {
    rest: ({ rest: { method, path, body } }: Given) =>
      ofRest(service.rest(method, path, { ...(body !== undefined && { body }) })),
    async wire({ operation, trpc }: Given) {
      const text = JSON.stringify(transformer.serialize(trpc))
      const [outcome] = await sendWire(service, operation, text)
      return outcome
    },
    client: ({ operation, trpc }: Given) => ofTrpc(callWith(petstore, operation, trpc)),
  }
}

/** The client package, for this service. */
export const clientOf = ({ origin, key }: Service): PetstoreClient =>
  createPetstoreClient({ url: `${origin}/trpc`, apiKey: key })

const isMutation = (name: string) => operations.find((known) => known.name === name)?.changes

/**
 * Sends a text as the input of a call, or of a batch with names separated by commas. Returns the
 * outcome of each call. If the whole batch is rejected, there is one outcome.
 */
export async function sendWire(
  { origin, key }: Service,
  names: string,
  text: string,
  headers: Record<string, string> = {},
): Promise<[Outcome, ...Outcome[]]> {
  const isBatch = names.includes(',')
  const url = new URL(`${origin}/trpc/${names}`)
  if (isBatch) url.searchParams.set('batch', '1')
  const method = names.split(',').some(isMutation) ? 'POST' : 'GET'
  if (method === 'GET') url.searchParams.set('input', text)
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(method === 'POST' && { body: text }),
  })
  const answer: unknown = await response.json()
  const [first, ...others] = [answer].flat().map((one) => outcomeOf(one as Envelope)) // throws otherwise
  if (!first) throw new Error('The batch was answered with nothing')
  if (others.length === 0) {
    expect(response.status).toBe('output' in first ? 200 : first.status)
  }
  return [first, ...others]
}

/** The response of tRPC: https://trpc.io/docs/rpc */
interface Envelope {
  result?: { data: string }
  error?: string
}

function outcomeOf({ result, error }: Envelope): Outcome {
  if (result) return { output: asOnRest(transformer.deserialize(result.data)) }
  const { message, data } = transformer.deserialize(error ?? '') as {
    message: string
    data: { code: string; httpStatus: number }
  }
  return { code: data.code, message, status: data.httpStatus }
}

/** Returns the output. Throws if the call failed. */
export function outputOf<Output>(outcome: Outcome): Output {
  if ('output' in outcome) return outcome.output as Output // the faces agree on its type
  throw new Error(`The call was refused: ${outcome.message}`)
}
