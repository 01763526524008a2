/** The ways to one call: REST, tRPC, JSON lines, and the client's stand-in, which serve the same router. */
import { createTRPCClient, httpBatchStreamLink, httpLink, TRPCClientError } from '@trpc/client'
import type { AnyTRPCRouter } from '@trpc/server'
import { setupServer } from 'msw/node'
import { afterAll, beforeAll } from 'vitest'
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { operationsOf } from '../../src/procedure/definitions.ts'
import type { RestMeta } from '../../src/procedure/meta.ts'
import type { Operation } from '../../src/procedure/operation.ts'
import { changed } from './outcome.ts'
import { transformer } from './router.ts'
import type { Service } from './service.ts'

/** An output, with integers as numbers; or the code, the status and the message of an error. */
export type Answer = { output: unknown } | [code: string, status: number, message: string]

export interface Sent {
  /** Undefined removes a header. */
  headers?: Record<string, string | undefined>
}

/** Calls a procedure by its name. */
export type Face = (name: string, input?: object, sent?: Sent) => Promise<Answer>

/** An operation that REST has. */
type Described = Operation & { rest: RestMeta }

/** The URL of the stand-in. */
export const STAND_IN = 'https://stand-in.example/trpc'

/** Returns the faces of a router that a service serves on stores of pets. The stand-in begins without pets. */
export function facesOf(
  router: AnyTRPCRouter,
  service: Service,
  ofProduct: Pick<Parameters<typeof handlersOf>[2], 'createContext' | 'authentication'> = {},
) {
  const operations = new Map(operationsOf(router).map((one) => [one.name, one]))
  const standIn = setupServer(
    ...handlersOf(router, sharedInMemory([]), { url: STAND_IN, ...ofProduct }),
  )
  beforeAll(() => standIn.listen({ onUnhandledFrame: 'bypass' }))
  afterAll(() => standIn.close())
  const rest: Face = async (name, input = {}, sent = {}) => {
    const { rest, type } = operations.get(name) as Described
    const query = type === 'query' ? `?${new URLSearchParams(input as Record<string, string>)}` : ''
    const body = type === 'query' ? {} : { body: JSON.stringify(input) }
    const answer = await service.fetch(`/v1${rest.path}${query}`, {
      method: rest.method,
      ...body,
      ...sent,
    })
    const value = JSON.parse((await answer.text()) || 'null')
    return answer.status < 400 ? { output: value } : [value.code, answer.status, value.message]
  }
  const trpc =
    (link: typeof httpLink | typeof httpBatchStreamLink, url: string): Face =>
    async (name, input, { headers = {} } = {}) => {
      const all = Object.entries({ authorization: `Bearer ${service.key}`, ...headers })
      const sent = Object.fromEntries(all.filter(([, value]) => value !== undefined))
      const client = createTRPCClient<AnyTRPCRouter>({
        links: [link({ url, transformer, headers: sent } as never)],
      })
      const { type } = operations.get(name) as Operation
      const procedure = client[name] as Record<string, (input: unknown) => Promise<unknown>>
      try {
        const output = await procedure[type === 'query' ? 'query' : 'mutate']?.(input)
        return {
          output: changed(output, (item) => (typeof item === 'bigint' ? Number(item) : item)),
        }
      } catch (error) {
        if (!(error instanceof TRPCClientError)) throw error
        return [error.data?.code, error.data?.httpStatus, error.message]
      }
    }
  const url = `${service.origin}/trpc`
  return {
    rest,
    trpc: trpc(httpLink, url),
    'JSON lines': trpc(httpBatchStreamLink, url),
    'the stand-in': trpc(httpLink, STAND_IN),
  }
}
