/** Tells of a query that fails: it goes on trying by itself, or the service refuses it for good. */
import { isTemporary } from './petstore.ts'

interface Query {
  /** Why it failed for good. */
  error: { message: string } | null
  /** Why the last attempt failed. */
  failureReason: unknown
}

export function Trouble({ query: { error, failureReason } }: { query: Query }) {
  const waits = failureReason !== null && isTemporary(failureReason)
  return (
    <div role="status">
      {waits && (
        <p className="notice">
          <span className="spinner" aria-hidden="true" />
          The shop cannot be reached right now. Trying again…
        </p>
      )}
      {error && !waits && <p className="notice">That did not work: {error.message}</p>}
    </div>
  )
}
