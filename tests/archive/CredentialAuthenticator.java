/*
 * The authenticator of Java's archive in these tests, like credential_authenticator.py for ours.
 */
import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.AuthorisationService;
import io.aeron.security.AuthorisationServiceSupplier;
import io.aeron.security.SessionProxy;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class CredentialAuthenticator implements AuthenticatorSupplier
{
    private static final int TRUNCATE = 13;

    public Authenticator get()
    {
        return new Watch();
    }

    public static class Rules implements AuthorisationServiceSupplier
    {
        public AuthorisationService get()
        {
            return (protocolId, actionId, type, principal) ->
                actionId != TRUNCATE || !"reader".equals(new String(principal, StandardCharsets.US_ASCII));
        }
    }

    private static final class Watch implements Authenticator
    {
        private final Map<Long, String> shown = new HashMap<>();

        public void onConnectRequest(final long sessionId, final byte[] credentials, final long nowMs)
        {
            shown.put(sessionId, new String(credentials, StandardCharsets.US_ASCII));
        }

        public void onChallengeResponse(final long sessionId, final byte[] credentials, final long nowMs)
        {
            onConnectRequest(sessionId, credentials, nowMs);
        }

        public void onConnectedSession(final SessionProxy session, final long nowMs)
        {
            final String word = shown.get(session.sessionId());
            if (word.equals("stranger"))
            {
                session.reject();
            }
            else if (word.equals("guest"))
            {
                session.challenge("which word?".getBytes(StandardCharsets.US_ASCII));
            }
            else
            {
                session.authenticate(word.getBytes(StandardCharsets.US_ASCII));
            }
        }

        public void onChallengedSession(final SessionProxy session, final long nowMs)
        {
            final String word = shown.get(session.sessionId());
            if (word.equals("the word"))
            {
                session.authenticate(word.getBytes(StandardCharsets.US_ASCII));
            }
            else if (!word.equals("guest"))
            {
                session.reject();
            }
        }
    }
}
