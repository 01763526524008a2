/** The router as its clients see it: inputs, outputs and errors, nothing of how they are served. */
import type {
  TRPCBuiltRouter,
  TRPCDefaultErrorShape,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
  TRPCRouterRecord,
} from '@trpc/server'
import { appRouter } from '../../src/router.ts'

interface Router<ErrorShape, Record> {
  _def: { _config: { $types: { errorShape: ErrorShape } }; record: Record }
}

/** The procedures of a router without their context and meta, and so for the routers in it. */
type ForClients<Procedures> = {
  [Name in keyof Procedures]: Procedures[Name] extends TRPCQueryProcedure<infer Built>
    ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
    : Procedures[Name] extends TRPCMutationProcedure<infer Built>
      ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
      : ForClients<Procedures[Name]>
}

// The declarations of a client must lead neither to the context and the meta nor to the libraries
// that these import. A name would; but what is inferred for a value, the compiler spells out.
export function forClients<
  ErrorShape extends TRPCDefaultErrorShape,
  Procedures extends TRPCRouterRecord,
>(router: Router<ErrorShape, Procedures>) {
  // The type leaves things out; the value is the same.
  return router as unknown as TRPCBuiltRouter<
    { ctx: object; meta: object; errorShape: ErrorShape; transformer: true },
    ForClients<Procedures>
  >
}

/** The router, for its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
