import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.exceptions.AeronException;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.concurrent.TimeUnit;

/**
 * Sends numbered commands to a cluster, one after the other, and verifies each answer.
 *
 * The answer to command N is a checksum of the commands 1 to N, so a command that the cluster has
 * lost, changed or applied twice is noticed at the next answer. A command without an answer is sent
 * again, in a new session if the old one has ended. Channels and AERON_DIR come from the environment.
 */
public final class Client implements EgressListener
{
    private static final long ANSWER_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(2);

    private final UnsafeBuffer command = new UnsafeBuffer(new byte[8]);
    private long answered;
    private long checksum;
    private long expected;

    public static void main(final String[] args) throws Exception
    {
        new Client().run(Long.parseLong(System.getenv("COMMANDS")));
    }

    private void run(final long commands) throws InterruptedException
    {
        while (answered < commands)
        {
            try (AeronCluster cluster = AeronCluster.connect(new AeronCluster.Context()
                .aeronDirectoryName(System.getenv("AERON_DIR"))
                .ingressChannel("aeron:udp?term-length=64k")
                .ingressEndpoints(endpoints(System.getenv("HOSTS").split(",")))
                .egressChannel("aeron:udp?term-length=64k|endpoint=" + System.getenv("HOST") + ":0")
                .egressListener(this)))
            {
                System.out.println("session open, leader " + cluster.leaderMemberId());
                while (answered < commands && !cluster.isClosed())
                {
                    send(cluster, answered + 1);
                }
            }
            catch (final AeronException error)
            {
                System.out.println("no session: " + error.getMessage());
            }
        }
        System.out.println("all " + commands + " commands answered");
    }

    private void send(final AeronCluster cluster, final long number)
    {
        command.putLong(0, number);
        expected = (checksum ^ number) * 0x100000001b3L + 0x9e3779b97f4a7c15L;
        final long deadlineNs = System.nanoTime() + ANSWER_TIMEOUT_NS;
        boolean isSent = false;
        while (answered < number && System.nanoTime() < deadlineNs && !cluster.isClosed())
        {
            isSent = isSent || cluster.offer(command, 0, command.capacity()) > 0;
            if (cluster.pollEgress() == 0)
            {
                java.util.concurrent.locks.LockSupport.parkNanos(PAUSE_NS / 4);
            }
        }
        if (answered < number)
        {
            System.out.println("no answer to " + number + (isSent ? "" : ", which could not be sent"));
        }
        else
        {
            java.util.concurrent.locks.LockSupport.parkNanos(PAUSE_NS);
        }
    }

    public void onMessage(
        final long clusterSessionId, final long timestamp, final DirectBuffer buffer,
        final int offset, final int length, final Header header)
    {
        final long number = buffer.getLong(offset);
        final long found = buffer.getLong(offset + 8);
        if (number == answered + 1)
        {
            if (found != expected)
            {
                throw new IllegalStateException("WRONG answer to " + number + ": expected " +
                    Long.toHexString(expected) + ", found " + Long.toHexString(found));
            }
            answered = number;
            checksum = found;
        }
        else if (number > answered + 1)
        {
            throw new IllegalStateException("WRONG answer: " + number + " after " + answered);
        }
    }

    public void onNewLeader(
        final long clusterSessionId, final long leadershipTermId, final int leaderMemberId,
        final String ingressEndpoints)
    {
        System.out.println("new leader " + leaderMemberId);
    }

    private static String endpoints(final String[] hosts)
    {
        final StringBuilder text = new StringBuilder();
        for (int member = 0; member < hosts.length; member++)
        {
            text.append(member > 0 ? "," : "").append(member).append('=').append(hosts[member])
                .append(':').append(9_000 + 100 * member);
        }
        return text.toString();
    }
}
