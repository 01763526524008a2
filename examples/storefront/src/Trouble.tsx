/** The message of a failed query: it is repeated automatically, or the error is permanent. */
import { useQueryClient } from '@tanstack/react-query'
import { DeveloperNote } from './DeveloperNote.tsx'
import { isTemporary } from './petstore.ts'

interface Query {
  /** The permanent error. */
  error: { message: string } | null
  /** The error of the last attempt. */
  failureReason: unknown
}

export const isInTrouble = ({ failureReason }: Query): boolean => failureReason !== null

export function Trouble({ query }: { query: Query }) {
  const queryClient = useQueryClient()
  // A query that waits for its next attempt ignores a refetch, so it is cancelled first.
  const tryNow = async () => {
    await queryClient.cancelQueries()
    await queryClient.refetchQueries({ type: 'active' })
  }
  const waits = isInTrouble(query) && isTemporary(query.failureReason)
  return (
    <div role="status">
      {waits && (
        <div className="notice">
          <p>The shop cannot be reached right now. Trying again…</p>
          <button type="button" className="quiet" onClick={() => void tryNow()}>
            Try now
          </button>
          <DeveloperNote>
            <code>npm start</code> in the folder of the service starts it.
          </DeveloperNote>
        </div>
      )}
      {query.error && !waits && <p className="notice">That did not work: {query.error.message}</p>}
    </div>
  )
}
